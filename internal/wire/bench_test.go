package wire

import (
	"bytes"
	"fmt"
	"testing"
)

// fiftyScores is a document like those of a fleet: about 22 KB of JSON.
func fiftyScores() []byte {
	var b bytes.Buffer
	b.WriteString(`{"apiVersion":"continuo/v1","kind":"Manifest","metadata":{"name":"kiosk"},"spec":{"scores":[`)
	for i := range 50 {
		if i > 0 {
			b.WriteByte(',')
		}
		switch i % 5 {
		case 0, 1:
			fmt.Fprintf(&b, `{"kind":"file","id":"conf-%d","spec":{"path":"/etc/kiosk/conf.d/%02d.conf","mode":"0644","owner":"root","group":"root","content":"`, i, i)
			for line := range 12 {
				fmt.Fprintf(&b, `option_%d_%d = value-%x\n`, i, line, (i+7)*(line+3)*7919%10007)
			}
			b.WriteString(`"}}`)
		case 2, 3:
			fmt.Fprintf(&b, `{"kind":"service","id":"unit-%d","after":["conf-%d"],"spec":{"unit":"kiosk-%d.service","enabled":true,"state":"running","restartOn":["conf-%d"],"unitFile":"[Unit]\nDescription=Kiosk part %d\n[Service]\nExecStart=/usr/bin/kiosk --part %d\nRestart=always\n[Install]\nWantedBy=multi-user.target\n"}}`, i, i-2, i, i-2, i, i)
		default:
			fmt.Fprintf(&b, `{"kind":"container","id":"web-%d","spec":{"name":"web-%d","image":"registry.example.org/kiosk/web@sha256:%064x","restart":"always","ports":["%d:8080"],"env":{"MODE":"kiosk","PART":"%d"}}}`, i, i, i*7919, 8000+i, i)
		}
	}
	b.WriteString(`]}}`)
	return b.Bytes()
}

func BenchmarkVerify50Scores(b *testing.B) {
	for _, encoding := range []string{EncodingNone, EncodingGzip} {
		b.Run("encoding="+encoding, func(b *testing.B) {
			st := statement()
			st.Encoding = encoding
			frame := seal(b, st, fiftyScores(), "a")
			keys := keySet(b, "a", KindDevice)
			b.ReportMetric(float64(len(fiftyScores())), "raw-bytes")
			b.ReportMetric(float64(len(frame)), "wire-bytes")
			b.ReportAllocs()
			for b.Loop() {
				v, err := Verify(frame, keys, expect)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := v.Open(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSeal50Scores(b *testing.B) {
	st := statement()
	st.Encoding = EncodingGzip
	payload, kp := fiftyScores(), signer(b, 'a')
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Seal(st, payload, kp); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHeartbeat(b *testing.B) {
	sent, err := heartbeat().Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeHeartbeat(sent); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAnswerHeartbeat(b *testing.B) {
	kp := signer(b, 'h')
	b.ReportAllocs()
	for b.Loop() {
		if _, err := SealControl(control(), dev1, kp); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGuard(b *testing.B) {
	c := control()
	in, err := encode(&c)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := guard(in, maxControl); err != nil {
			b.Fatal(err)
		}
	}
}
