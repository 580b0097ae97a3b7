package interpret

import (
	"context"

	"github.com/continuo-fleet/continuo/topology"
)

// A Digest is what may be told of a content, in statuses, changes, plans, receipts and logs: nothing, if nothing is
// known, or one of the two. Only a Teller makes one.
type Digest struct {
	sha256, fingerprint string
}

// SHA256 of the content, in lower-case hex; empty if it is not told.
func (d Digest) SHA256() string { return d.sha256 }

// Fingerprint stands for the content where its sha256 is not told: it is the same for the same content on this device, and
// says nothing to who has not the key of the device.
func (d Digest) Fingerprint() string { return d.fingerprint }

// Keyed begins the text of a Digest that is a fingerprint.
const Keyed = "keyed:"

// String is the Digest as changes have it: the sha256, or a fingerprint after Keyed. Both compare.
func (d Digest) String() string {
	if d.fingerprint != "" {
		return Keyed + d.fingerprint
	}
	return d.sha256
}

// A Teller tells of the contents of files. Nothing else makes text of a topology.Sum.
type Teller struct{ secrets topology.Secrets }

// TellerOf returns the Teller of a device: with the key of its secrets, as previews on it have it, too. On a device without
// secrets nothing is told of what is not for everybody.
func TellerOf(device any) Teller { return Teller{secretsOf(device)} }

func secretsOf(device any) topology.Secrets {
	if h, ok := device.(topology.HasSecrets); ok {
		return h.Secrets()
	}
	return topology.NoSecrets{}
}

// Tell returns what may be told of a content. Its sha256 is, if public, or if it is what is stated: short contents, such as a
// PIN, can be guessed from it. Of anything else a fingerprint is told; so is it of what is sealed.
//
// Public is what the mode of the file says about others, and nothing else. A file that they could read by its mode, in a
// directory that they cannot search, counts as public: the directory may be opened, and nobody thinks of its files then.
//
// Stated is what a manifest says the content is to be, which is known to whoever may read that; empty if none does, or if
// what it says holds a secret.
func (t Teller) Tell(ctx context.Context, content topology.Sum, public bool, stated topology.Sum) Digest {
	switch {
	case content == "":
		return Digest{}
	case content == stated && !isUnstated(ctx), public && !Sealed(ctx):
		return Digest{sha256: string(content)}
	}
	return Digest{fingerprint: t.secrets.Fingerprint([]byte("sha256:" + content))}
}

// Public reports whether others than the owner and the group of a file may read it, as its mode has it.
func Public(mode uint32) bool { return mode&0o004 != 0 }

type unstatedKey struct{}

// Unstated is for playing a score that no manifest has, such as a file that comes back from a backup: what it says its content
// is to be is told as what is there is.
func Unstated(ctx context.Context) context.Context {
	return context.WithValue(ctx, unstatedKey{}, true)
}

func isUnstated(ctx context.Context) bool { return ctx.Value(unstatedKey{}) != nil }
