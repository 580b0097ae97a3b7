package natslink

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
)

func credentialOf(t testing.TB, claims string) []byte {
	t.Helper()
	kp, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := kp.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return credsText("e30."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".c2ln", string(seed))
}

// Of a credential the device reads when to ask for another one: at three quarters of its life.
func TestCredential(t *testing.T) {
	c, err := parseCredential(credentialOf(t, `{"iat":1000,"exp":5000}`))
	if err != nil || !c.due().Equal(time.Unix(4000, 0)) || !c.expires.Equal(time.Unix(5000, 0)) {
		t.Errorf("%+v, due %s, %v", c, c.due(), err)
	}
	if c, err := parseCredential(credentialOf(t, `{"iat":1000}`)); err != nil || !c.expires.IsZero() {
		t.Errorf("without an end: %+v, %v", c, err)
	}
	for name, text := range map[string]string{
		"nothing": "",
		"no JSON": string(credentialOf(t, "x")), "no number": string(credentialOf(t, `{"exp":"x"}`)),
	} {
		if _, err := parseCredential([]byte(text)); err == nil || !strings.Contains(err.Error(), "cannot read the credential") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseCredential(f *testing.F) {
	f.Add(credentialOf(f, `{"iat":1000,"exp":5000}`))
	f.Add([]byte("-"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := parseCredential(b); err == nil && (c.token == "" || c.key == nil) {
			t.Errorf("%+v", c)
		}
	})
}
