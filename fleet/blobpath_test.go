package fleet_test

import (
	"bytes"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/agent/blobs"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/topology/conform"
)

// publisher is the fleet, as the suite of contents knows it.
type publisher struct{ r *rig }

func (p publisher) Offer(content []byte) error {
	_, err := p.r.PutBlob(p.r.t.Context(), bytes.NewReader(content))
	return err
}

func (p publisher) Withdraw(sum string) error {
	s, err := p.r.js().Stream(p.r.t.Context(), wire.StreamBlobs)
	if err != nil {
		return err
	}
	return s.Purge(p.r.t.Context(), jetstream.WithPurgeSubject("$O.blobs.>"))
}

func (p publisher) Damage(sum string) error {
	s, err := p.r.js().Stream(p.r.t.Context(), wire.StreamBlobs)
	if err != nil {
		return err
	}
	m, err := s.GetLastMsgForSubject(p.r.t.Context(), wire.BlobChunkSubject(sum, 1))
	if err != nil {
		return err
	}
	m.Data[7] ^= 1
	_, err = p.r.js().Publish(p.r.t.Context(), m.Subject, m.Data)
	return err
}

// The whole way: a fleet that stores, a server, and a device that keeps.
func TestBlobsOfADevice(t *testing.T) {
	conform.Blobs(t, func(t *testing.T) conform.BlobBench {
		r := newRig(t, pi1)
		dev := r.device(pi1)
		return conform.BlobBench{Blobs: blobs.Open(t.TempDir(), dev.link), Hands: publisher{r}}
	})
}
