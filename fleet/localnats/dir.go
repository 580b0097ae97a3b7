package localnats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/access"
)

// A Dir is the directory of a server, which may be running or not.
type Dir string

// AgentConfig is what an agent needs to be a device of this fleet.
type AgentConfig struct {
	Device    string   `json:"device"` // id
	Site      string   `json:"site"`
	Servers   []string `json:"servers"`
	CredsFile string   `json:"credsFile"` // on this machine; secret
	Operator  string   `json:"operator"`  // public key that signs what the device should be
	Control   string   `json:"control"`   // public key that signs answers to heartbeats
	Root      string   `json:"root"`      // file with the trust root, on this machine
}

// AddDevice makes the credential of a device, unless it has one. A server that is running takes it at once.
func (dir Dir) AddDevice(d fleet.Device) (AgentConfig, error) {
	if err := d.Check(); err != nil {
		return AgentConfig{}, err
	}
	keys, err := dir.Access()
	if err != nil {
		return AgentConfig{}, err
	}
	if err := dir.ensureDevice(keys, d); err != nil {
		return AgentConfig{}, fmt.Errorf("cannot add device %s: %w", d, err)
	}
	return dir.agentConfig(d)
}

// RemoveDevice revokes the credential of a device and deletes it. The server need not run.
func (dir Dir) RemoveDevice(ctx context.Context, d fleet.Device) error {
	if err := d.Check(); err != nil {
		return err
	}
	kp, err := fleet.LoadKey(dir.device(d))
	if err != nil {
		return fmt.Errorf("cannot remove device %s: %w", d, err)
	}
	public, err := kp.PublicKey()
	if err != nil {
		return fmt.Errorf("cannot remove device %s: %w", d, err)
	}
	if err := dir.Revoke(ctx, access.Fleet, public); err != nil {
		return fmt.Errorf("cannot remove device %s: %w", d, err)
	}
	for _, file := range []string{creds(dir.device(d)), dir.device(d)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot remove device %s: %w", d, err)
		}
	}
	return nil
}

// Devices lists the devices, sorted.
func (dir Dir) Devices() ([]fleet.Device, error) {
	entries, err := os.ReadDir(filepath.Join(string(dir), "devices"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot list the devices: %w", err)
	}
	var out []fleet.Device
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".nk"); ok {
			d, err := fleet.ParseDevice(name)
			if err == nil && d.String() != name {
				err = fmt.Errorf("the key of %s is in %s.nk", d, d)
			}
			if err != nil {
				return nil, fmt.Errorf("cannot list the devices: %s is in the way: %w", filepath.Join(string(dir), "devices", e.Name()), err)
			}
			out = append(out, d)
		}
	}
	return out, nil
}

// leftOver is how old a temporary file is that nobody is writing any more.
const leftOver = time.Minute

// sweep removes the temporary files that a killed command left behind: the seed of a key may be in them.
func (dir Dir) sweep() error {
	for _, folder := range []string{"keys", "keys/nats", "users", "devices"} {
		files, err := filepath.Glob(filepath.Join(string(dir), folder, "*.tmp"))
		if err != nil {
			return fmt.Errorf("cannot look for left-over files: %w", err)
		}
		for _, file := range files {
			st, err := os.Lstat(file)
			if err == nil && time.Since(st.ModTime()) > leftOver {
				err = os.Remove(file)
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("cannot remove a left-over file: %w", err)
			}
		}
	}
	return nil
}

// Keys are the signing keys of the fleet; those that are missing are made.
func (dir Dir) Keys() (fleet.Keys, error) { return fleet.OpenKeys(filepath.Join(string(dir), "keys")) }

// Control is how a control service connects to the server.
func (dir Dir) Control() fleet.Options { return dir.connect("control") }

// Operator is how the operator connects to the server, where it runs now or ran last.
func (dir Dir) Operator() fleet.Options { return dir.connect("operator") }

func (dir Dir) connect(user string) fleet.Options {
	o := fleet.Options{Server: dir.url(), Creds: creds(dir.user(user)), Getenv: noEnv, ConfigDir: string(dir)}
	if strings.HasPrefix(o.Server, "tls://") {
		o.ServerCert = filepath.Join(string(dir), certName)
	}
	return o
}

// noEnv keeps the environment of a command from changing what its own server is.
func noEnv(string) string { return "" }

// url is where the server runs, or ran last, as this machine reaches it.
func (dir Dir) url() string {
	if url := dir.read("url"); url != "" {
		return url
	}
	return "nats://" + DefaultListen
}

// reach is the same as devices reach it.
func (dir Dir) reach() string { return cmp.Or(dir.read("reach"), dir.url()) }

// read gives the line in a small file, or nothing.
func (dir Dir) read(name string) string {
	b, err := os.ReadFile(filepath.Join(string(dir), name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// write replaces a file of the directory.
func (dir Dir) write(name, content string) error {
	path := filepath.Join(string(dir), name)
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.WriteString(content)
		err = errors.Join(err, f.Sync(), f.Close()) // a revocation may be in it
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

const (
	configName = "nats.conf"
	certName   = "server.pem" // a copy of the server's certificate, which is public
)

func (dir Dir) config() string          { return filepath.Join(string(dir), configName) }
func (dir Dir) user(name string) string { return filepath.Join(string(dir), "users", name+".nk") }
func (dir Dir) device(d fleet.Device) string {
	return filepath.Join(string(dir), "devices", d.String()+".nk")
}

func (dir Dir) agentConfig(d fleet.Device) (AgentConfig, error) {
	keys, err := dir.Keys()
	if err != nil {
		return AgentConfig{}, err
	}
	c := AgentConfig{Device: d.ID, Site: d.Site, Servers: []string{dir.reach()}, CredsFile: creds(dir.device(d))}
	if c.Operator, c.Control, err = keys.Trusted(); err != nil {
		return AgentConfig{}, err
	}
	chain, err := dir.Trust()
	if err != nil {
		return AgentConfig{}, err
	}
	c.Root = dir.Roots().File(chain.Last().Metadata.Version)
	return c, nil
}

// lock makes sure that one server at a time uses the directory.
func (dir Dir) lock() (*os.File, error) {
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the directory of the server: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(string(dir), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the directory of the server: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot use %s: another server is running there", dir)
	}
	return f, nil
}
