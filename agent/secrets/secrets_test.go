package secrets_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/continuo-fleet/continuo/agent/secrets"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
)

// open returns secrets with a key of their own.
func open(t *testing.T, o secrets.Options) *secrets.Store {
	t.Helper()
	o.State = t.TempDir()
	return secrets.Open(o)
}

// owner keeps secrets on a device: in a file of settings, or as credentials.
type owner struct {
	dir, env string
	values   map[string]string
}

func newOwner(t *testing.T) *owner {
	t.Helper()
	dir := t.TempDir()
	return &owner{dir: dir, env: filepath.Join(dir, "secrets.env"), values: map[string]string{}}
}

func quoted(v string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v) + `"` }

func (o *owner) write() error {
	text := "# secrets of this device\n\n"
	for name, v := range o.values {
		text += name + "=" + quoted(v) + "\n"
	}
	_ = os.Remove(o.env) // as an editor does: another file
	return os.WriteFile(o.env, []byte(text), 0o600)
}

func (o *owner) SetSecret(name, value string) error { o.values[name] = value; return o.write() }
func (o *owner) DropSecret(name string) error       { delete(o.values, name); return o.write() }
func (o *owner) ExposeSecret(string) error          { return os.Chmod(o.env, 0o640) }

// systemd keeps each in a file of its own.
type systemd struct{ dir string }

func (s systemd) SetSecret(name, value string) error {
	_ = os.Remove(filepath.Join(s.dir, name))
	return os.WriteFile(filepath.Join(s.dir, name), []byte(value), 0o400)
}
func (s systemd) DropSecret(name string) error   { return os.Remove(filepath.Join(s.dir, name)) }
func (s systemd) ExposeSecret(name string) error { return os.Chmod(filepath.Join(s.dir, name), 0o444) }

func TestConforms(t *testing.T) { // G59
	t.Run("env file", func(t *testing.T) {
		conform.Secrets(t, func(t *testing.T) conform.SecretBench {
			o := newOwner(t)
			if err := o.write(); err != nil {
				t.Fatal(err)
			}
			return conform.SecretBench{Secrets: open(t, secrets.Options{EnvFiles: []string{o.env}}), Hands: o}
		})
	})
	t.Run("credentials", func(t *testing.T) {
		conform.Secrets(t, func(t *testing.T) conform.SecretBench {
			o := newOwner(t)
			if err := o.write(); err != nil {
				t.Fatal(err)
			}
			return conform.SecretBench{Secrets: open(t, secrets.Options{EnvFiles: []string{o.env}, Credentials: o.dir}), Hands: systemd{o.dir}}
		})
	})
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// The last place that has a name counts, and one that cannot be used is not passed over.
func TestOrder(t *testing.T) { // G59
	dir := t.TempDir()
	first, second, creds := filepath.Join(dir, "1.env"), filepath.Join(dir, "2.env"), filepath.Join(dir, "credentials")
	if err := os.Mkdir(creds, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, first, "a=1\nb=1\nc=1\n", 0o600)
	put(t, second, "b=2\nc=2\n", 0o600)
	put(t, filepath.Join(creds, "c"), "3\n", 0o400)
	put(t, filepath.Join(creds, ".hidden"), "x", 0o400)
	s := open(t, secrets.Options{EnvFiles: []string{first, second}, Credentials: creds})
	for name, want := range map[string]string{"a": "1", "b": "2", "c": "3\n"} {
		if got, err := s.Secret(t.Context(), name); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	all, problems := s.List(t.Context())
	if len(problems) > 0 || len(all) != 3 {
		t.Fatalf("got %+v, %v", all, problems)
	}
	if c := all[2]; c.Name != "c" || c.Source != filepath.Join(creds, "c") || !slices.Equal(c.Shadows, []string{first, second}) || c.Fingerprint != s.Fingerprint([]byte("3\n")) {
		t.Errorf("got %+v", c)
	}
	if err := os.Chmod(second, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "mode is 0644 and must be 0600", "b": "chmod 0600 " + second, "nothing": "mode is 0644"} {
		if got, err := s.Secret(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %q, %v; want %s", name, got, err, want)
		}
	}
	if _, err := s.Secret(t.Context(), "c"); err != nil {
		t.Errorf("a later place has it, and still: %v", err)
	}
	if all, problems = s.List(t.Context()); len(all) != 3 || len(problems) != 1 || !strings.Contains(problems[0].Error(), second) {
		t.Errorf("got %+v, %v", all, problems)
	}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Secret(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), second+" is not there") {
		t.Errorf("got %v", err)
	}
}

// The file that is read when none is named need not be there.
func TestNothingIsConfigured(t *testing.T) {
	s := open(t, secrets.Options{Root: t.TempDir()}) // not the files of this machine, which may have some
	_, err := s.Secret(t.Context(), "a")
	if f := topology.FaultOf(err); f.Code != topology.CodeSecret || !strings.Contains(f.Text, "put it into "+secrets.DefaultEnvFile) {
		t.Errorf("got %v", err)
	}
	if all, problems := s.List(t.Context()); len(all)+len(problems) > 0 {
		t.Errorf("got %v, %v", all, problems)
	}
}

// What is not the owner's own regular file is not read, and never waited for.
func TestPlacesThatAreNone(t *testing.T) { // G59
	const canary = "canary-70e1"
	tests := []struct {
		name, want string
		make       func(t *testing.T, path string)
	}{
		{"others may read it", "mode is 0604", func(t *testing.T, p string) { put(t, p, "a="+canary, 0o604) }},
		{"the group may write it", "mode is 0620", func(t *testing.T, p string) { put(t, p, "a="+canary, 0o620) }},
		{"a program", "mode is 0700", func(t *testing.T, p string) { put(t, p, "a="+canary, 0o700) }},
		{"a link", "symbolic link", func(t *testing.T, p string) {
			put(t, p+".target", "a="+canary, 0o600)
			if err := os.Symlink(p+".target", p); err != nil {
				t.Fatal(err)
			}
		}},
		{"a directory", "no regular file", func(t *testing.T, p string) {
			if err := os.Mkdir(p, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"a pipe", "no regular file", pipe},
		{"too large", "are no secret", func(t *testing.T, p string) { put(t, p, "a="+canary+strings.Repeat("x", 1<<20), 0o600) }},
		{"damaged", "line 2: it is not NAME=value", func(t *testing.T, p string) { put(t, p, "b=1\n"+canary+"\n", 0o600) }},
		{"a name that is none", "line 1: it is not NAME=value", func(t *testing.T, p string) { put(t, p, "export a="+canary, 0o600) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secrets.env")
			tt.make(t, path)
			_, err := open(t, secrets.Options{EnvFiles: []string{path}}).Secret(t.Context(), "a")
			if f := topology.FaultOf(err); err == nil || f.Code != topology.CodeSecret || !strings.Contains(f.Text, tt.want) || !strings.Contains(f.Text, path) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if strings.Contains(fmt.Sprint(err), canary) {
				t.Errorf("the value is in the error: %v", err)
			}
		})
	}
}

func pipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLinkOnTheWay(t *testing.T) { // X53
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "real", "secrets.env"), "a=1", 0o600)
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	_, err := open(t, secrets.Options{EnvFiles: []string{filepath.Join(dir, "link", "secrets.env")}}).Secret(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "symbolic link is on the way") {
		t.Errorf("got %v", err)
	}
}

func TestKey(t *testing.T) {
	state := t.TempDir()
	path := filepath.Join(state, secrets.KeyFile)
	fingerprint := func(look bool) string {
		return secrets.Open(secrets.Options{State: state, Look: look}).Fingerprint([]byte("x"))
	}
	if a, b := fingerprint(true), fingerprint(true); a == b {
		t.Error("a key that is not to be kept was kept")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("who only looks wrote a key")
	}
	first := fingerprint(false)
	if fingerprint(false) != first || fingerprint(true) != first {
		t.Error("the key is another one after a restart")
	}
	kept, err := os.ReadFile(path)
	if err != nil || len(kept) != 32 {
		t.Fatalf("%d bytes, %v", len(kept), err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	put(t, path, "torn", 0o600)
	if another := fingerprint(false); another == first || another != fingerprint(false) {
		t.Error("a damaged key was not replaced, once")
	}
	put(t, path, string(kept), 0o600)
	if fingerprint(false) != first {
		t.Error("the fingerprint does not depend on the key alone")
	}
	env := filepath.Join(t.TempDir(), "a.env")
	put(t, env, "a=1", 0o600)
	for name, want := range map[string]string{state: "mode is 0640", filepath.Join(state, "nowhere"): "no such file"} {
		put(t, path, string(kept), 0o640)
		_, err := secrets.Open(secrets.Options{EnvFiles: []string{env}, State: name}).Secret(t.Context(), "a")
		if f := topology.FaultOf(err); err == nil || f.Code != topology.CodeSecret || !strings.Contains(f.Text, want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
		s := secrets.Open(secrets.Options{State: name}) // a status must not be another one with every look
		if one := s.Fingerprint([]byte("x")); one != s.Fingerprint([]byte("x")) || one == first || one == s.Fingerprint([]byte("y")) {
			t.Errorf("%s: without a key that can be used, fingerprints are none of this process", name)
		}
	}
}

// watcher remembers what it is asked to watch, and says what it is told to.
type watcher struct {
	asked []topology.Resource
	say   []topology.Resource
}

func (w *watcher) Watch(_ context.Context, resources []topology.Resource, changed func(topology.Resource)) error {
	w.asked = resources
	for _, r := range w.say {
		changed(r)
	}
	return nil
}

func TestEvents(t *testing.T) { // G59
	const env = "file:/etc/continuo/a.env"
	s := open(t, secrets.Options{EnvFiles: []string{"/etc/continuo/a.env", "/etc/continuo/b.env"}})
	tests := []struct {
		name       string
		ask, asked []topology.Resource
		say, heard []topology.Resource
	}{
		{"no secrets", []topology.Resource{"file:/x", env}, []topology.Resource{"file:/x", env}, []topology.Resource{"", env}, []topology.Resource{"", env}},
		{"secrets", []topology.Resource{"secret:a", "file:/x", "secret:b"}, []topology.Resource{"file:/x", env, "file:/etc/continuo/b.env"},
			[]topology.Resource{"", "file:/x", env}, []topology.Resource{"", "file:/x", "secret:a", "secret:b"}},
		{"a score writes the file, too", []topology.Resource{env, "secret:a"}, []topology.Resource{env, "file:/etc/continuo/b.env"},
			[]topology.Resource{env}, []topology.Resource{"secret:a", env}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := &watcher{say: tt.say}
			var heard []topology.Resource
			if err := s.Events(w).Watch(t.Context(), tt.ask, func(r topology.Resource) { heard = append(heard, r) }); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(w.asked, tt.asked) || !slices.Equal(heard, tt.heard) {
				t.Errorf("watched %v and heard %v", w.asked, heard)
			}
		})
	}
}
