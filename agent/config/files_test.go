package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What proves who the device is, is root's or of who runs the agent, and nobody else can read or exchange it: for a key
// as for a credentials file and the key of a certificate.
func TestCheckFiles(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, dir, file string)
		want   string // "" = good
	}{
		{"its owner's alone", func(*testing.T, string, string) {}, ""},
		{"by a link", func(t *testing.T, dir, file string) {
			must(t, os.Rename(file, file+".1"))
			must(t, os.Symlink(filepath.Base(file)+".1", file))
		}, ""},
		{"read by a group", func(t *testing.T, dir, file string) { must(t, os.Chmod(file, 0o640)) }, "its mode is 0640 and others may read it; run chmod 0600 FILE"},
		{"read by everybody, behind a link", func(t *testing.T, dir, file string) {
			must(t, os.Rename(file, file+".1"))
			must(t, os.Symlink(filepath.Base(file)+".1", file))
			must(t, os.Chmod(file, 0o604))
		}, "its mode is 0604 and others may read it; run chmod 0600 FILE.1"},
		{"written by others", func(t *testing.T, dir, file string) { must(t, os.Chmod(file, 0o602)) }, "its mode is 0602 and others may write it; run chmod 0600 FILE"},
		{"in a directory of everybody", func(t *testing.T, dir, file string) { must(t, os.Chmod(dir, 0o777)) }, "has mode 0777, and others can exchange it; run chmod go-w DIR"},
		{"in a directory of everybody where each has his own", func(t *testing.T, dir, file string) { must(t, os.Chmod(dir, 0o777|os.ModeSticky)) }, ""},
		{"below a directory of everybody", func(t *testing.T, dir, file string) { must(t, os.Chmod(filepath.Dir(dir), 0o707)) }, "has mode 0707, and others can exchange it"},
		{"somebody else's", func(t *testing.T, dir, file string) { chown(t, file) }, "it belongs to the user 4711; run chown root FILE"},
		{"in somebody else's directory", func(t *testing.T, dir, file string) { chown(t, dir) }, "its directory DIR belongs to the user 4711, who can exchange it"},
		{"a directory", func(t *testing.T, dir, file string) { must(t, os.Remove(file)); must(t, os.Mkdir(file, 0o700)) }, "it is not a regular file"},
		{"not there", func(t *testing.T, dir, file string) { must(t, os.Remove(file)) }, "it is not there"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "continuo")
			must(t, os.Mkdir(dir, 0o755))
			file := filepath.Join(dir, "key")
			must(t, os.WriteFile(file, []byte("SU"), 0o600))
			tt.change(t, dir, file)
			for what, c := range map[string]Config{
				"the credential file":            {Credentials: Credentials{Type: CredentialsNkey, File: file}},
				"the credential file ":           {Credentials: Credentials{Type: CredentialsCreds, File: file}},
				"the key of the TLS certificate": {TLS: TLS{Key: file}},
			} {
				err := c.CheckFiles()
				if tt.want == "" && err != nil {
					t.Error(err)
				}
				want := strings.NewReplacer("FILE", file, "DIR", dir).Replace(tt.want)
				if want != "" && (err == nil || !strings.HasPrefix(err.Error(), "cannot use "+strings.TrimSpace(what)+" "+file+": ") || !strings.Contains(err.Error(), want)) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		})
	}
	if err := (Config{Credentials: Credentials{Type: CredentialsNone}}).CheckFiles(); err != nil {
		t.Error(err)
	}
}

// Whoever can write the configuration is whom a device trusts; reading it is allowed.
func TestCheckFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agent.yaml")
	must(t, os.WriteFile(file, nil, 0o644))
	if err := CheckFile(file); err != nil {
		t.Error(err)
	}
	must(t, os.Chmod(file, 0o664))
	if err := CheckFile(file); err == nil || err.Error() != "cannot use the configuration "+file+": its mode is 0664 and others may write it; run chmod 0644 "+file {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{file + ".none", "/dev/null"} {
		if err := CheckFile(name); err != nil {
			t.Error(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// chown gives a file to somebody else, which only root can.
func chown(t *testing.T, name string) {
	t.Helper()
	if os.Geteuid() != 0 {
		if os.Getenv("CONTINUO_DEVICE_REQUIRED") != "" {
			t.Fatal("only root can give a file to somebody else")
		}
		t.Skip("only root can give a file to somebody else")
	}
	must(t, os.Chown(name, 4711, -1))
}

// The trust root is no secret, and who can write it is the owner of the device.
func TestCheckTrustRoot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "root.json")
	must(t, os.WriteFile(file, []byte("{}"), 0o644))
	c := Config{Trust: Trust{Root: file}}
	must(t, c.CheckFiles())
	must(t, os.Chmod(file, 0o664))
	if err := c.CheckFiles(); err == nil || !strings.Contains(err.Error(), "cannot use the trust root "+file) || !strings.Contains(err.Error(), "others may write it") {
		t.Errorf("got %v", err)
	}
}
