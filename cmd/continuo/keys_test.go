package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/fleet"
)

// want runs a command and fails if it does not end and say as wanted.
func (b *bench) want(code int, says string, args ...string) (stdout string) {
	b.t.Helper()
	got, out, errs := b.run(args...)
	if got != code || !strings.Contains(out+errs, says) {
		b.t.Fatalf("continuo %s: exit %d, want %d and %q:\n%s%s", strings.Join(args, " "), got, code, says, out, errs)
	}
	return out
}

// The keys of a fleet, from one person with three keys to two who sign together, with the commands that they type.
func TestKeys(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1", "--device", "office.pi-2")
	pi := b.device("pi-1")
	b.want(0, "trust root of fleet home, version 1; signatures (root 1, documents 1", "keys", "list")
	if out := b.want(0, "", "keys", "list", "-o", "json"); !strings.Contains(out, `"kind": "TrustRoot"`) {
		t.Errorf("no JSON: %s", out)
	}
	b.want(0, "may destroy, may run shells", "keys", "show", "operator")
	b.want(1, `has no key "nobody"`, "keys", "show", "nobody")

	anna := filepath.Join(b.dir, "anna.nk")
	public := strings.TrimSpace(b.want(0, "A", "keys", "generate", anna))
	if st, err := os.Stat(anna); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", st, err)
	}
	b.want(1, "a key is never replaced", "keys", "generate", anna)

	// A change is previewed, made, and handed on.
	add := []string{"keys", "add", "anna", "--key", public, "--role", "publisher", "--devices", "office.*", "--policy", "guarded", "--not-after", "720h"}
	b.want(0, "this is a preview", add...)
	b.want(0, "no other one is being made", "keys", "publish")
	b.want(0, "enough root keys have signed it", append(add, "--confirm")...)
	b.want(1, "there is such a key", append(add, "--confirm")...)
	b.want(0, "version 2 is being made", "keys", "list")
	b.want(0, "this is a preview", "keys", "publish")
	b.want(0, "devices office.*, policy at most guarded", "keys", "publish", "--confirm")
	b.want(0, "version 2; ", "keys", "list")

	// Her bounds count before a device is asked.
	file := b.write("m.yaml", good)
	b.want(1, "the key of anna may not sign documents of device main.pi-1", "publish", file, "--key", anna, "--confirm")
	b.want(1, "its policy has preset: converge", "publish", file, "--site", "office", "--key", anna, "--confirm")
	b.want(0, "converged", "publish", file, "--confirm", "--wait")
	b.want(0, "devices main.*", "keys", "add", "anna", "--overwrite", "--devices", "main.*", "--policy", "converge", "--confirm")
	b.want(0, "published", "keys", "publish", "--confirm")
	changed := b.write("changed.yaml", strings.Replace(good, "hello", "hers", 1))
	b.want(0, "converged", "publish", changed, "--key", anna, "--confirm", "--wait")

	// Two have to sign.
	b.want(1, "nothing could ever be signed", "keys", "require", "--documents", "3")
	b.want(0, "enough", "keys", "require", "--documents", "2", "--confirm")
	b.want(0, "published", "keys", "publish", "--confirm")
	held := filepath.Join(b.dir, "held.json")
	b.want(1, "--anew", "publish", file, "--confirm") // one signature is too few, also for what is changed
	b.want(1, "write it to a file with --out", "publish", file, "--anew", "--confirm")
	b.want(0, "others sign it", "publish", file, "--anew", "--out", held)
	b.want(1, "2 needed", "publish", held, "--confirm")
	b.want(0, "nothing was signed: this is a preview", "sign", held, "--key", anna)
	b.want(0, "2 signatures now", "sign", held, "--key", anna, "--confirm")
	b.want(0, "this is a preview", "publish", held)
	b.want(0, "published", "publish", held, "--confirm")
	b.want(0, "converged", "status", "pi-1", "--wait")
	if content, _ := pi.mem.Read("/etc/kiosk.conf"); content != "hello" {
		t.Errorf("the file is %q", content)
	}
	b.want(2, "do not go together", "publish", file, "--out", held, "--confirm")

	// A stolen key: generations begin anew, with everything that a device should be.
	b.want(0, "enough", "keys", "require", "--documents", "1", "--confirm")
	b.want(0, "generations begin anew with version 5", "keys", "revoke", "anna", "--restart", "--confirm")
	b.want(0, "published", "keys", "publish", "--confirm")
	b.want(1, "--anew", "publish", changed, "--confirm")
	b.want(0, "converged", "publish", changed, "--anew", "--confirm", "--wait")
	b.want(1, "was revoked", "publish", file, "--key", anna, "--confirm")
	b.want(0, "revoked", "keys", "list")
}

// The root key is moved away, another one takes its place, and the new key signs where it is, with OpenSSH.
func TestKeysWithoutTheRootKey(t *testing.T) {
	b := newBench(t)
	b.up()
	away := filepath.Join(b.dir, "root.nk")
	if err := os.Rename(filepath.Join(b.dir, "data/keys/root.nk"), away); err != nil {
		t.Fatal(err)
	}
	ssh := filepath.Join(b.dir, "id")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "root", "-f", ssh).CombinedOutput(); err != nil {
		t.Fatalf("this test needs ssh-keygen: %v: %s", err, out)
	}
	b.want(0, "needs the signatures of more root keys", "keys", "rotate", "root", "--key", ssh+".pub", "--confirm")
	b.want(1, "no device would follow it", "keys", "publish", "--confirm")
	b.want(1, "there is no key in DIR/data/keys/root.nk", "keys", "sign", "--confirm")
	b.want(0, "1 signature now", "keys", "sign", "--key", away, "--confirm")
	b.want(1, "no device would follow it", "keys", "publish", "--confirm") // the new root key has not
	bytes := filepath.Join(b.dir, "bytes")
	b.want(0, "ssh-keygen -Y sign", "keys", "sign", "--to-sign", bytes)
	if out, err := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-n", "continuo", "-f", ssh, bytes).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.want(0, "2 signatures now", "keys", "sign", "--ssh-signature", bytes+".sig", "--confirm")
	b.want(0, "published", "keys", "publish", "--confirm")
	b.want(1, "no root key of it", "keys", "sign", filepath.Join(b.dir, "data/trust/2.json"), "--key", filepath.Join(b.dir, "data/keys/operator.nk"), "--confirm")
	b.want(0, "ssh-ed25519", "keys", "show", "root")
}

// A directory of before there were trust roots gets one, with the keys that it has.
func TestUpMakesATrustRoot(t *testing.T) {
	b := newBench(t)
	keys, err := fleet.OpenKeys(filepath.Join(b.dir, "data/keys"))
	if err != nil {
		t.Fatal(err)
	}
	operator, _, err := keys.Trusted()
	if err != nil {
		t.Fatal(err)
	}
	stop := b.up("--device", "pi-1")
	if out := b.want(0, "", "keys", "show", "operator", "-o", "json"); !strings.Contains(out, operator) {
		t.Errorf("another operator key: %s", out)
	}
	config, err := os.ReadFile(filepath.Join(b.dir, "data/agents/pi-1/agent.yaml"))
	if err != nil || !strings.Contains(string(config), "trust: {root: \""+b.dir+"/data/trust/1.json\"}") {
		t.Errorf("%s %v", config, err)
	}
	pi := b.device("pi-1")
	b.want(0, "converged", "publish", b.write("m.yaml", good), "--confirm", "--wait")
	if content, _ := pi.mem.Read("/etc/kiosk.conf"); content != "hello" {
		t.Errorf("the file is %q", content)
	}
	stop()
	// The next start makes no other one, also without the root key.
	if err := os.Remove(filepath.Join(b.dir, "data/keys/root.nk")); err != nil {
		t.Fatal(err)
	}
	b.up()
	if _, err := os.Stat(filepath.Join(b.dir, "data/keys/root.nk")); err == nil {
		t.Error("another root key was made")
	}
	b.want(0, "version 1;", "keys", "list")
}

func TestKeysUsage(t *testing.T) {
	b := newBench(t)
	kp, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	user, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	b.want(1, "continuo keys init makes one", "keys", "list")
	b.want(0, "move DIR/data/keys/root.nk", "keys", "init", "--fleet", "work")
	b.want(1, "version 1 is in DIR/data/trust", "keys", "init")
	for _, tt := range []struct {
		code int
		says string
		args []string
	}{
		{2, "give one KEY", []string{"keys", "show"}},
		{2, "name one FILE", []string{"keys", "generate", "a", "b"}},
		{2, "name one FILE", []string{"sign"}},
		{1, "cannot sign", []string{"keys", "sign"}},
		{2, "with --key", []string{"keys", "add", "x"}},
		{1, "it is no public key, and no file", []string{"keys", "add", "x", "--key", user}},
		{1, "a key without a role", []string{"keys", "add", "x", "--key", b.key()}},
		{1, `unknown role "king"`, []string{"keys", "add", "x", "--key", b.key(), "--role", "king"}},
		{1, "make another key for the other roles", []string{"keys", "add", "x", "--key", b.key(), "--role", "root,publisher"}},
		{2, "no kind of score", []string{"keys", "add", "x", "--key", b.key(), "--role", "publisher", "--kinds", "fle"}},
		{2, "--policy is", []string{"keys", "add", "x", "--key", b.key(), "--role", "publisher", "--policy", "loose"}},
		{2, "--not-after must be", []string{"keys", "add", "x", "--key", b.key(), "--role", "publisher", "--not-after", "later"}},
		{1, "is no pattern", []string{"keys", "add", "x", "--key", b.key(), "--role", "publisher", "--devices", "A!"}},
		{2, "rotate operator --key KEY", []string{"keys", "add", "operator", "--overwrite", "--key", b.key()}},
		{2, "give the new public key", []string{"keys", "rotate", "operator"}},
		{2, "how many signatures", []string{"keys", "require"}},
		{1, "nothing could ever be signed", []string{"keys", "revoke", "root"}},
		{1, "there is none", []string{"sign", filepath.Join(b.dir, "data/trust/1.json"), "--trust-root", b.dir}},
	} {
		b.want(tt.code, tt.says, tt.args...)
	}
}

// key is a public key that nobody has.
func (b *bench) key() string {
	b.t.Helper()
	kp, err := nkeys.CreateAccount()
	if err != nil {
		b.t.Fatal(err)
	}
	public, err := kp.PublicKey()
	if err != nil {
		b.t.Fatal(err)
	}
	return public
}
