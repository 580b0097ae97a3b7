package trust

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// sealText has r sign what is no root, or not quite one.
func sealText(t testing.TB, media, text string) wire.Envelope {
	t.Helper()
	st := wire.Statement{Kind: wire.KindRoot, Audience: wire.AudienceFleet, Name: "home", Generation: 2, Issued: 1_750_000_000, Media: media}
	e, err := wire.SealEnvelope(st, []byte(text), signer(t, 'r'))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// X69: a policy that could be read in two ways, or not at all, is refused as a whole with a code, even if a root key signed it;
// and a private key that somebody put where a public one belongs is in no error.
func TestMalformedRoots(t *testing.T) {
	sound, err := score.Encode(root(t, 2, nil))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := signer(t, 'q').Seed()
	if err != nil {
		t.Fatal(err)
	}
	with := func(old, new string) string {
		t.Helper()
		if strings.Count(string(sound), old) == 0 {
			t.Fatalf("no %s in %s", old, sound)
		}
		return strings.Replace(string(sound), old, new, 1)
	}
	p, r := `"key":"`+public(t, 'p')+`"`, `"key":"`+public(t, 'r')+`"`
	const unreadable, malformed = wire.CodeUnsupportedVersion, wire.CodeMalformed
	for name, tt := range map[string]struct {
		text string
		code wire.Code
	}{
		"sound":                      {string(sound), ""},
		"nothing":                    {"", unreadable},
		"cut off":                    {string(sound[:len(sound)-1]), unreadable},
		"two documents":              {string(sound) + string(sound), unreadable},
		"no mapping":                 {"[]", unreadable},
		"null":                       {"null", malformed},
		"a key of a mapping twice":   {with(`"kind"`, `"kind":"TrustRoot","kind"`), unreadable},
		"the list of keys twice":     {with(`"spec":{`, `"spec":{"keys":[],`), unreadable},
		"an unknown field":           {with(`"spec":{`, `"spec":{"admin":true,`), unreadable},
		"an unknown word of a scope": {with(p, p+`,"scope":{"everything":true}`), unreadable},
		"a field in capitals":        {with(`"metadata"`, `"Metadata"`), unreadable},
		"text for a number":          {with(`"version":2`, `"version":"2"`), unreadable},
		"a negative version":         {with(`"version":2`, `"version":-2`), unreadable},
		"a fraction of a version":    {with(`"version":2`, `"version":2.5`), unreadable},
		"a version beyond all":       {with(`"version":2`, `"version":18446744073709551616`), unreadable},
		"not the version it says":    {with(`"version":2`, `"version":3`), malformed},
		"another kind":               {with(`"TrustRoot"`, `"Assignment"`), malformed},
		"another version of the API": {with(score.APIVersion, score.APIVersion+"0"), malformed},
		"one key twice":              {with(p, r), malformed},
		"a key in lower case":        {with(p, strings.ToLower(p)), malformed},
		"a key with a letter more":   {with(public(t, 'p'), public(t, 'p')+"A"), malformed},
		"a private key":              {with(public(t, 'p'), string(seed)), malformed},
		"a private key of OpenSSH":   {with(public(t, 'p'), "ssh-ed25519 "+string(seed)), malformed},
		"a private key as a name":    {with(`"name":"p"`, `"name":"`+strings.Repeat(string(seed), 2)+`"`), malformed},
		"a private key as a role":    {with(`["publisher"]`, `["`+string(seed)+`"]`), malformed},
		"a private key as a device":  {with(p, p+`,"scope":{"devices":["`+string(seed)+`!"]}`), malformed},
		"a private key as a field":   {with(`"spec":{`, `"spec":{"`+string(seed)+`":1,`), unreadable},
		"no roles":                   {with(`["publisher"]`, `[]`), malformed},
		"a role twice":               {with(`["publisher"]`, `["publisher","publisher"]`), malformed},
		"a role that is a number":    {with(`["publisher"]`, `[7]`), unreadable},
		"nested without an end":      {with(`["publisher"]`, strings.Repeat("[", 20000)), unreadable},
		"text that is no UTF-8":      {with(`"name":"p"`, "\"name\":\"\xff\""), unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := root(t, 1, nil).Next(sealText(t, Media, tt.text))
			if codeOf(err) != tt.code || (err == nil) != (tt.code == "") {
				t.Errorf("%v, want %q", err, tt.code)
			}
			if err != nil && (strings.Contains(err.Error(), string(seed)) || len(err.Error()) > 500) {
				t.Errorf("the error holds what must not be shown, or is %d bytes long: %v", len(err.Error()), err)
			}
		})
	}
	if _, err := root(t, 1, nil).Next(sealText(t, "application/json", string(sound))); codeOf(err) != wire.CodeUnsupportedVersion {
		t.Errorf("of another type: %v", err)
	}
}

// FuzzRootText hands over whatever a root key could have signed.
func FuzzRootText(f *testing.F) {
	sound, err := score.Encode(root(f, 2, nil))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(sound))
	one := root(f, 1, nil)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > maxRoot {
			return
		}
		if r, err := one.Next(sealText(t, Media, text)); err == nil && (r.Metadata.Version != 2 || len(r.Validate()) > 0) {
			t.Errorf("version %d follows 1: %v", r.Metadata.Version, r.Validate())
		}
	})
}
