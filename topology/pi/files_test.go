package pi

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// below opens a device whose file tree is a new directory, with two accounts.
func below(t testing.TB) (*files, string) {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, root+"/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nkiosk:x:1000:1001::/home/kiosk:/bin/sh\n")
	put(t, root+"/etc/group", "root:x:0:\nkiosk:x:1001:\n")
	d, err := Open(t.Context(), Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.files, root
}

func put(t testing.TB, p, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, want topology.Code, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no fault, want %s", want)
	}
	f := topology.FaultOf(err)
	if f.Code != want {
		t.Errorf("code %s (%s), want %s", f.Code, f.Text, want)
	}
	for _, w := range words {
		if !strings.Contains(f.Text, w) {
			t.Errorf("text %q does not say %q", f.Text, w)
		}
	}
}

func wantNoTemp(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".continuo-") {
			t.Errorf("%s is left in %s", e.Name(), dir)
		}
	}
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CONTINUO_DEVICE_REQUIRED") != "" {
		t.Fatal("needs root")
	}
	t.Skip("needs root")
}

func TestFileState(t *testing.T) { // H60, case 36
	f, root := below(t)
	put(t, root+"/etc/motd", "hello\n")
	if err := os.Link(root+"/etc/motd", root+"/etc/second"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/mnt/usb/x", root+"/etc/dangling"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(root+"/etc/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", root+"/sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tests := []struct {
		path   string
		typ    topology.FileType
		digest topology.Sum
		links  uint64
		target string
	}{
		{"/etc/motd", topology.Regular, topology.SumOf([]byte("hello\n")), 2, ""},
		{"/etc", topology.Directory, "", 0, ""},
		{"/", topology.Directory, "", 0, ""},
		{"/etc/dangling", topology.Symlink, "", 1, "/mnt/usb/x"},
		{"/etc/fifo", topology.Special, "", 1, ""},
		{"/sock", topology.Special, "", 1, ""},
		{"/etc/nothing", topology.Absent, "", 0, ""},
		{"/no/such/dir/x", topology.Absent, "", 0, ""},
	}
	for _, noOpenat2 := range []bool{false, true} {
		f.tree.noOpenat2.Store(noOpenat2)
		for _, tt := range tests {
			t.Run(fmt.Sprint(tt.path, noOpenat2), func(t *testing.T) {
				st, err := f.File(t.Context(), tt.path)
				if err != nil {
					t.Fatal(err)
				}
				if st.Type != tt.typ || st.SHA256 != tt.digest || st.Target != tt.target || tt.links > 0 && st.Links != tt.links {
					t.Errorf("got %+v", st)
				}
			})
		}
	}
}

func TestPathsAreRefused(t *testing.T) { // H68
	f, root := below(t)
	put(t, root+"/etc/motd", "hello\n")
	put(t, root+"/plain", "x")
	if err := os.Symlink("/etc", root+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../../../etc", root+"/out"); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path string
		code topology.Code
		word string
	}{
		{"etc/motd", topology.CodeInvalid, "absolute"},
		{"/etc/../etc/motd", topology.CodeInvalid, "clean"},
		{"/etc/motd/", topology.CodeInvalid, "clean"},
		{"/etc/mo\x00td", topology.CodeInvalid, "clean"},
		{"/" + strings.Repeat("a", 300), topology.CodeInvalid, "too long"},
		{"/link/motd", topology.CodeSymlink, "/link is a symbolic link to /etc"},
		{"/out/passwd", topology.CodeSymlink, "/out is a symbolic link to ../../../../etc"},
		{"/plain/x", topology.CodeNotRegular, "not a directory"},
	}
	for _, noOpenat2 := range []bool{false, true} {
		f.tree.noOpenat2.Store(noOpenat2)
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%.20s %v", tt.path, noOpenat2), func(t *testing.T) {
				_, err := f.File(t.Context(), tt.path)
				wantCode(t, err, tt.code, tt.word)
				_, err = f.Content(t.Context(), tt.path, 100)
				wantCode(t, err, tt.code, tt.word)
				wantCode(t, f.WriteFile(t.Context(), topology.FileWrite{Path: tt.path, Mode: 0o644}), tt.code, tt.word)
				wantCode(t, f.SetAttributes(t.Context(), topology.FileWrite{Path: tt.path, Mode: 0o644}), tt.code, tt.word)
				wantCode(t, f.RemoveFile(t.Context(), tt.path), tt.code, tt.word)
			})
		}
	}
}

func TestOnlyRegularFilesAreReplaced(t *testing.T) { // cases 28, 30, 33
	f, root := below(t)
	put(t, root+"/data/real", "real")
	for name, target := range map[string]string{"/etc/dangling": "/mnt/usb/x", "/etc/link": "/data/real"} {
		if err := os.Symlink(target, root+name); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(root+"/etc/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path string
		code topology.Code
		word string
	}{
		{"/etc/dangling", topology.CodeSymlink, "symbolic link to /mnt/usb/x"},
		{"/etc/link", topology.CodeSymlink, "symbolic link to /data/real"},
		{"/etc/fifo", topology.CodeNotRegular, "pipe"},
		{"/data", topology.CodeNotRegular, "directory"},
		{"/", topology.CodeNotRegular, "directory"},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			w := topology.FileWrite{Path: tt.path, Content: []byte("new"), Mode: 0o644}
			for range 2 {
				wantCode(t, f.WriteFile(t.Context(), w), tt.code, tt.word)
				wantCode(t, f.SetAttributes(t.Context(), w), tt.code, tt.word)
				wantCode(t, f.RemoveFile(t.Context(), tt.path), tt.code, tt.word)
			}
		})
	}
	if got, _ := os.ReadFile(root + "/data/real"); string(got) != "real" {
		t.Errorf("the target of a link became %q", got)
	}
	if _, err := os.Lstat(root + "/mnt"); err == nil {
		t.Error("the target of a dangling link was made")
	}
	wantNoTemp(t, root+"/etc")
}

func TestWriteFile(t *testing.T) { // cases 38, 45, 47
	needRoot(t)
	f, root := below(t)
	w := topology.FileWrite{
		Path: "/srv/new/caf\u00e9 \U0001F680.txt", Content: []byte("hello\n"), Mode: 0o4750, Owner: "kiosk", Group: "1001", Mark: "kiosk/conf",
	}
	old := syscall.Umask(0o077)
	err := f.WriteFile(t.Context(), w)
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	st, err := f.File(t.Context(), w.Path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode != 0o4750 || st.Owner != "kiosk" || st.Group != "kiosk" || st.UID != 1000 || st.GID != 1001 || st.Mark != "kiosk/conf" || st.Size != 6 {
		t.Errorf("got %+v", st)
	}
	if info, err := os.Stat(root + "/srv/new"); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("parent: %v, %v", info, err)
	}
	// What is not said is kept.
	if err := f.WriteFile(t.Context(), topology.FileWrite{Path: w.Path, Content: []byte("x"), Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	st, _ = f.File(t.Context(), w.Path)
	if st.Owner != "kiosk" || st.Group != "kiosk" || st.Mark != "" || st.Mode != 0o600 {
		t.Errorf("after the second write: %+v", st)
	}
	w.Mode = 0o2711
	if err := f.SetAttributes(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	st, _ = f.File(t.Context(), w.Path)
	if st.Mode != 0o2711 || st.Mark != "kiosk/conf" || st.Size != 1 {
		t.Errorf("after SetAttributes: %+v", st)
	}
	// Doing nothing touches nothing.
	before, _ := os.Stat(root + w.Path)
	if err := f.SetAttributes(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	after, _ := os.Stat(root + w.Path)
	if before.Sys().(*syscall.Stat_t).Ctim != after.Sys().(*syscall.Stat_t).Ctim {
		t.Error("SetAttributes changed what was right already")
	}
	wantNoTemp(t, root+"/srv/new")
	for range 2 {
		if err := f.RemoveFile(t.Context(), w.Path); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.RemoveFile(t.Context(), "/no/such/dir/x"); err != nil {
		t.Fatal(err)
	}
}

func TestAccounts(t *testing.T) {
	f, root := below(t)
	wantCode(t, f.WriteFile(t.Context(), topology.FileWrite{Path: "/x", Owner: "nobody-here"}), topology.CodeNoAccount, "user", "nobody-here")
	wantCode(t, f.WriteFile(t.Context(), topology.FileWrite{Path: "/x", Group: "nobody-here"}), topology.CodeNoAccount, "group")
	if _, err := os.Lstat(root + "/x"); err == nil {
		t.Error("the file was made")
	}
	put(t, root+"/etc/passwd", "nobody-here:x:77:88::/:/bin/sh\nbroken line\n:x:5:5\nneg:x:-1:1\n")
	if id, err := f.accounts.user("nobody-here"); id != 77 || err != nil {
		t.Errorf("after the account was made: %d, %v", id, err)
	}
	if id, err := f.accounts.user("4242"); id != 4242 || err != nil {
		t.Errorf("a number: %d, %v", id, err)
	}
	if name := f.accounts.users.name(0); name != "0" {
		t.Errorf("a user without a name is %q", name)
	}
	if _, err := f.accounts.user("4294967295"); err == nil { // means "leave it" to chown
		t.Error("-1 was taken for a user")
	}
}

// asUser runs do on a thread of an ordinary user, which ends with it.
func FuzzParseAccounts(f *testing.F) {
	f.Add([]byte("root:x:0:0:root:/root:/bin/sh\nkiosk:x:1000:1001::/home/kiosk:/bin/sh\n"))
	f.Add([]byte("broken\n:x:5:5\nneg:x:-1:1\nnis:+:::\nbig:x:99999999999:1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		names, ids := parseAccounts(data)
		for id, name := range names {
			if _, ok := ids[name]; !ok {
				t.Errorf("%d is called %q, which nobody is", id, name)
			}
		}
	})
}

// A file that is larger than any document is not read through: one of holes, or one that grows without end, would keep
// the device busy for ever. It is seen, its size is right, and it is another one.
func TestHugeFile(t *testing.T) {
	f, root := below(t)
	put(t, root+"/etc/huge", "x")
	if err := os.Truncate(root+"/etc/huge", 1<<40); err != nil {
		t.Fatal(err)
	}
	st, err := f.File(t.Context(), "/etc/huge")
	if err != nil || st.Type != topology.Regular || st.Size != 1<<40 || st.SHA256 != "" || st.Mode != 0o644 {
		t.Errorf("got %+v, %v", st, err)
	}
	if err := f.WriteFile(t.Context(), topology.FileWrite{Path: "/etc/huge", Content: []byte("small"), Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if st, err := f.File(t.Context(), "/etc/huge"); err != nil || st.Size != 5 || st.SHA256 == "" {
		t.Errorf("got %+v, %v", st, err)
	}
	put(t, root+"/etc/limit", "x")
	for size, known := range map[int64]bool{maxHashed: true, maxHashed + 1: false} {
		if err := os.Truncate(root+"/etc/limit", size); err != nil {
			t.Fatal(err)
		}
		if st, err := f.File(t.Context(), "/etc/limit"); err != nil || st.Size != size || (st.SHA256 != "") != known {
			t.Errorf("%d bytes: got %+v, %v", size, st, err)
		}
	}
}
