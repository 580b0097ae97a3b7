package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	backupFolder = "backups"
	backupTime   = "20060102T150405Z"
	metaSuffix   = ".json"
	maxBase      = 200 // of 255 bytes that a name may have
)

// Backup is a file of the device as it was before something replaced it.
type Backup struct {
	Name   string    `json:"name"` // BASE.TIME.SHA8; the store sets it. Of a file that not everybody may read, SHA8 is random: names are reported
	Path   string    `json:"path"` // where it was
	Mode   uint32    `json:"mode"`
	UID    int       `json:"uid"`
	GID    int       `json:"gid"`
	Time   time.Time `json:"time"`   // the store sets it
	SHA256 string    `json:"sha256"` // the store sets it
	Size   int64     `json:"size"`   // the store sets it
}

// tagOf tells backups of one second apart. Secrets live in files that not everybody may read, and names are
// reported: a part of their digest would be enough to try guesses on.
func tagOf(b Backup) string {
	if b.Mode&0o004 == 0 {
		return fmt.Sprintf("%08x", rand.Uint32())
	}
	return b.SHA256[:8]
}

// SaveBackup keeps content under a name made of the base of its path, the time
// and the digest, and returns what it kept. It is durable when it returns nil.
// The same content of the same path with the same rights is kept once.
func (s *Store) SaveBackup(b Backup, content []byte) (Backup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256(content)
	b.SHA256, b.Size = hex.EncodeToString(sum[:]), int64(len(content))
	base := path.Base(b.Path)
	if b.Path == "" || base == "/" || base == "." || base == ".." {
		return Backup{}, fmt.Errorf("cannot back up %q: not the path of a file", b.Path)
	}
	for len(base) > maxBase {
		_, n := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-n]
	}
	if err := s.ready(); err != nil {
		return Backup{}, err
	}
	kept, err := s.backups(func(name string) bool {
		return strings.HasPrefix(name, base+".")
	})
	if err != nil {
		return Backup{}, err
	}
	b.Time = s.now().UTC().Truncate(time.Second)
	for _, k := range kept { // the newest one is to stay the newest, also when the clock was put back
		if k.Path == b.Path && k.Time.After(b.Time) {
			b.Time = k.Time
		}
	}
	tag := s.tag(b)
	for taken := true; taken; {
		b.Name, taken = fmt.Sprintf("%s.%s.%s", base, b.Time.Format(backupTime), tag), false
		for _, k := range kept {
			if k.Path == b.Path && k.SHA256 == b.SHA256 && k.Mode == b.Mode && k.UID == b.UID && k.GID == b.GID {
				if have, err := s.fs.Read(backupFolder+"/"+k.Name, -1); err == nil && bytes.Equal(have, content) {
					return k, nil
				}
			}
			// A file of the same base and content, in another folder, or another content of the same second, which
			// gives no order.
			taken = taken || k.Name == b.Name || k.Path == b.Path && k.Time.Equal(b.Time)
		}
		if taken {
			b.Time = b.Time.Add(time.Second)
		}
	}
	meta, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return Backup{}, fmt.Errorf("cannot back up %s: %w", b.Path, err)
	}
	// Content first: what has a description is whole.
	err = s.fs.Replace(File{backupFolder + "/" + b.Name, content}, File{backupFolder + "/" + b.Name + metaSuffix, append(meta, '\n')})
	if err != nil {
		s.unsettled = true // it may be in view, and must not be found and trusted
		return Backup{}, fmt.Errorf("cannot back up %s: %w", b.Path, err)
	}
	return b, nil
}

// Backups lists what is kept, in order of name. A backup whose description is
// damaged is listed by its name and time only.
func (s *Store) Backups() ([]Backup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backups(func(string) bool { return true })
}

func (s *Store) backups(want func(name string) bool) ([]Backup, error) {
	files, err := s.fs.List(backupFolder)
	if err != nil {
		return nil, fmt.Errorf("cannot list backups: %w", err)
	}
	var out []Backup
	for _, file := range files {
		name, ok := strings.CutSuffix(file, metaSuffix)
		if _, whole := slices.BinarySearch(files, name); !ok || !whole || !want(name) {
			continue // a description without content was never acknowledged
		}
		b, err := s.describe(name)
		if err != nil && !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// describe reads the description of a backup.
func (s *Store) describe(name string) (Backup, error) {
	meta, err := s.fs.Read(backupFolder+"/"+name+metaSuffix, -1)
	if err != nil && !unreadable(err) {
		return Backup{}, fmt.Errorf("cannot read backup %s: %w", name, err)
	}
	var b Backup
	if err == nil && json.Unmarshal(meta, &b) == nil && b.Name == name && b.Path != "" {
		return b, nil
	}
	b = Backup{Name: name}
	if parts := strings.Split(name, "."); len(parts) >= 3 {
		b.Time, _ = time.Parse(backupTime, parts[len(parts)-2])
	}
	return b, fmt.Errorf("cannot read backup %s: its description is %w", name, ErrDamaged)
}

// ReadBackup returns what is kept under a name, checked against its digest. An
// unknown name is an error that is fs.ErrNotExist, other bytes are one that is
// [ErrDamaged].
func (s *Store) ReadBackup(name string) (Backup, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return Backup{}, nil, fmt.Errorf("cannot read backup %q: %w", name, fs.ErrNotExist)
	}
	b, err := s.describe(name)
	if err != nil {
		return b, nil, err
	}
	content, err := s.fs.Read(backupFolder+"/"+name, -1)
	if err != nil {
		return b, nil, fmt.Errorf("cannot read backup %s: %w", name, err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != b.SHA256 {
		return b, nil, fmt.Errorf("cannot read backup %s: its content is %w", name, ErrDamaged)
	}
	return b, content, nil
}
