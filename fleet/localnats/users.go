package localnats

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/access"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// A User is somebody with a credential for the servers of the fleet, beside those that a server makes for itself.
type User struct {
	Name     string    `json:"name"`
	Role     string    `json:"role"`
	Sites    []string  `json:"sites,omitempty"`
	Issued   time.Time `json:"issued"`
	NotAfter time.Time `json:"notAfter,omitzero"`
	Key      string    `json:"key"` // public
}

// AddUser makes a credential and writes it to a file that is not there yet; empty means one of the directory. What stays
// here for certain is the JWT, which is no secret: the credential can be taken away to whom it is for.
func (dir Dir) AddUser(name, role string, sites []string, notAfter time.Time, file string) (string, error) {
	keys, err := dir.Access()
	if err != nil {
		return "", err
	}
	kp, err := nkeys.CreateUser()
	if err != nil {
		return "", fmt.Errorf("cannot make a key: %w", err)
	}
	public, err := kp.PublicKey()
	if err != nil {
		return "", fmt.Errorf("cannot make a key: %w", err)
	}
	token, err := keys.User(name, wire.Role(role), sites, public, notAfter)
	if err != nil {
		return "", err
	}
	for _, own := range []string{dir.userJWT(name), creds(dir.user(name))} {
		if _, err := os.Lstat(own); !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("cannot add user %s: there is one of this name (%s); remove that one first, or choose another name", name, own)
		}
	}
	text, err := access.Creds(token, kp)
	if err != nil {
		return "", err
	}
	if file == "" {
		file = creds(dir.user(name))
	}
	if err := os.MkdirAll(filepath.Dir(dir.userJWT(name)), 0o700); err != nil {
		return "", fmt.Errorf("cannot add user %s: %w", name, err)
	}
	// First what it takes to revoke it.
	if err := dir.write(filepath.Join("users", name+".jwt"), token+"\n"); err != nil {
		return "", err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(text)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("cannot write the credential of %s: %w", name, err), os.Remove(dir.userJWT(name)))
	}
	return file, nil
}

// Users are all of them, by name.
func (dir Dir) Users() ([]User, error) {
	keys, err := dir.Access()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(dir.userJWT("*"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the users: %w", err)
	}
	users := []User{}
	for _, file := range files {
		u, err := readUser(keys, file)
		if err != nil {
			return nil, fmt.Errorf("cannot list the users: %s: %w", file, err)
		}
		users = append(users, u)
	}
	return users, nil
}

// RemoveUser revokes the credential of a user, wherever it is now, and forgets him.
func (dir Dir) RemoveUser(ctx context.Context, name string) error {
	if err := wire.CheckName("a user", name); err != nil {
		return err
	}
	keys, err := dir.Access()
	if err != nil {
		return err
	}
	u, err := readUser(keys, dir.userJWT(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove user %s: there is none of this name; continuo user list says who there is", name)
	}
	if err != nil {
		return fmt.Errorf("cannot remove user %s: %w", name, err)
	}
	if err := dir.Revoke(ctx, access.Control, u.Key); err != nil {
		return fmt.Errorf("cannot remove user %s: %w", name, err)
	}
	for _, file := range []string{creds(dir.user(name)), dir.userJWT(name)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove user %s: %w", name, err)
		}
	}
	return nil
}

func (dir Dir) userJWT(name string) string { return strings.TrimSuffix(dir.user(name), ".nk") + ".jwt" }

func readUser(keys access.Keys, file string) (User, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return User{}, err
	}
	c, err := keys.Read(text)
	if err != nil {
		return User{}, err
	}
	return User{Name: c.Name, Role: string(c.Role), Sites: c.Sites, Issued: c.Issued.UTC(), NotAfter: c.NotAfter.UTC(), Key: c.User}, nil
}
