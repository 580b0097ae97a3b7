package localnats

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
)

// Seeds that a killed command left in temporary files go at the next start; what is being written stays.
func TestLeftOverSeeds(t *testing.T) {
	dir := Dir(t.TempDir())
	d := fleet.Device{Site: "main", ID: "pi-1"}
	if _, err := dir.AddDevice(d); err != nil {
		t.Fatal(err)
	}
	old, fresh := dir.device(d)+".ABC.tmp", dir.device(d)+".DEF.tmp"
	for _, file := range []string{old, fresh} {
		if err := os.Link(dir.device(d), file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(fresh); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(fresh, []byte("SU"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Start(Options{Dir: string(dir), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := os.Lstat(old); !os.IsNotExist(err) {
		t.Errorf("the old one is there: %v", err)
	}
	if _, err := os.Lstat(fresh); err != nil {
		t.Error(err)
	}
	if devices, err := dir.Devices(); err != nil || len(devices) != 1 || devices[0] != d {
		t.Errorf("got %v, %v", devices, err)
	}
}

// A file that holds no key is named before a server starts.
func TestEmptyDeviceFile(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := emptyKey(dir, "main.pi-9.nk"); err != nil {
		t.Fatal(err)
	}
	if s, err := Start(Options{Dir: string(dir), Listen: "127.0.0.1:0"}); err == nil || !strings.Contains(err.Error(), "main.pi-9.nk: it is no nkey seed") {
		t.Errorf("got %v", err)
		s.Close()
	}
}

func emptyKey(dir Dir, name string) error {
	folder := filepath.Join(string(dir), "devices")
	return errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, name), nil, 0o600))
}

// A file that is no key of a device is named, where it is and what is wrong with it.
func TestForeignDeviceFile(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := emptyKey(dir, "pi-9.nk"); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Devices(); err == nil || !strings.Contains(err.Error(), "devices/pi-9.nk is in the way: the key of main.pi-9 is in main.pi-9.nk") {
		t.Errorf("got %v", err)
	}
}
