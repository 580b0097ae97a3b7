package wire

import (
	"strings"
	"testing"
)

// Whatever a subject or a key is, what is read from it makes the same subject again: nothing that a stranger may choose
// can mean another device, or more than one (case 115).
func FuzzNames(f *testing.F) {
	d := Device{Site: "main", ID: "pi-1"}
	for _, s := range []string{
		StatusSubject(d), ActualSubject(d), ConfigSubject(DeviceKey(d)), ConfigSubject(RootKey(7)), string(ClassKey("kiosk")), "getst.main.*", "getst.main.>", "kv.>", "cfg.t.root.07", "cfg.d..", " ", "",
	} {
		f.Add(s, "7", "DEL")
	}
	f.Fuzz(func(t *testing.T, subject, generation, operation string) {
		if d, err := DeviceOf(subject); err == nil && (d.Check() != nil || !strings.HasSuffix(subject, d.String()) || strings.ContainsAny(subject[len(subject)-len(d.String()):], "*> ")) {
			t.Fatalf("%q is of %q", subject, d)
		}
		if target, err := Key(subject).Target(); err == nil {
			made := map[Kind]func() Key{
				KindDevice: func() Key { return DeviceKey(target.Device) }, KindApproval: func() Key { return ApprovalKey(target.Device) },
				KindClass: func() Key { return ClassKey(target.Class) }, KindRoot: func() Key { return RootKey(target.Root) },
			}[target.Kind]
			if made == nil || made() != Key(subject) {
				t.Fatalf("key %q is of %+v", subject, target)
			}
		}
		header := map[string][]string{HeaderGeneration: {generation}, "KV-Operation": {operation}}
		if a, ok := ParseAnnouncement(subject, header); ok && ConfigSubject(a.Key) != subject {
			t.Fatalf("%q announces %+v", subject, a)
		}
		if w, err := AuditWriterOf(subject); err == nil && prefixAudit+w.String() != subject && !strings.HasSuffix(subject, w.String()) {
			t.Fatalf("%q is written by %+v", subject, w)
		}
		if sum, ok := BlobOf(subject); ok && CheckBlobDigest(sum) != nil {
			t.Fatalf("%q is of content %q", subject, sum)
		}
	})
}

// One key has one text: whatever is read as a public key is written as it was read, and has a fingerprint.
func FuzzCheckKey(f *testing.F) {
	f.Add(publicKey(f, signer(f, 'a')))
	f.Add(publicKey(f, signer(f, 'a')) + "A")
	f.Add("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ somebody")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := CheckKey(text)
		if err != nil {
			if len(err.Error()) > 400 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		again, err := CheckKey(key)
		if err != nil || again != key || !strings.HasPrefix(key, "ssh-ed25519 ") && key != text {
			t.Fatalf("%q is %q, and that is %q (%v)", text, key, again, err)
		}
		if print, err := Fingerprint(key); err != nil || len(print) != len("SHA256:")+43 {
			t.Fatalf("%q has the fingerprint %q (%v)", key, print, err)
		}
	})
}
