package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/continuo-fleet/continuo/topology"
)

// Blobs of the device.
func (d *Device) Blobs() topology.Blobs { return blobs{d} }

type blobs struct{ d *Device }

func (b blobs) HasBlob(ctx context.Context, sum string) (bool, error) {
	if err := b.d.control.call(ctx, OpHasBlob, blobResource(sum)); err != nil {
		return false, err
	}
	if err := topology.CheckBlobDigest(sum); err != nil {
		return false, err
	}
	return b.d.hasBlob(sum), nil
}

func (b blobs) FetchBlob(ctx context.Context, sum string, size int64) error {
	here := b.d.hasBlob(sum)
	if err := b.d.control.enter(ctx, Call{OpFetchBlob, blobResource(sum), !here}); err != nil {
		return err
	}
	if err := topology.CheckBlobDigest(sum); err != nil {
		return err
	}
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	content, ok := b.d.blobs[sum]
	if !ok {
		content, ok = b.d.offered[sum]
	}
	switch {
	case !ok:
		return topology.Faultf(topology.CodeUnreachable, "cannot fetch the content %.12s: the fleet does not have it", sum)
	case int64(len(content)) != size:
		return topology.Faultf(topology.CodeInvalid, "cannot fetch the content %.12s: it has %d bytes and not %d", sum, len(content), size)
	case blobDigest(content) != sum:
		return topology.Faultf(topology.CodeInvalid, "cannot fetch the content %.12s: what came is something else", sum)
	}
	b.d.blobs[sum] = content
	return nil
}

func (b blobs) OpenBlob(ctx context.Context, sum string) (io.ReadCloser, error) {
	if err := b.d.control.call(ctx, OpOpenBlob, blobResource(sum)); err != nil {
		return nil, err
	}
	if err := topology.CheckBlobDigest(sum); err != nil {
		return nil, err
	}
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	content, ok := b.d.blobs[sum]
	if !ok {
		return nil, topology.Faultf(topology.CodeUnreachable, "the content %.12s is not on the device", sum)
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

func (d *Device) hasBlob(sum string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.blobs[sum]
	return ok
}

// PutBlob puts a content on the device and returns its digest.
func (d *Device) PutBlob(content string) (sha256 string) {
	sum := blobDigest([]byte(content))
	d.hands(func() { d.blobs[sum] = []byte(content) })
	return sum
}

// OfferBlob lets the fleet have a content, so that the device can fetch it, and returns its digest.
func (d *Device) OfferBlob(content string) (sha256 string) {
	sum := blobDigest([]byte(content))
	d.hands(func() { d.offered[sum] = []byte(content) })
	return sum
}

// DamageBlob makes what the fleet has as a content something else of the same length.
func (d *Device) DamageBlob(sha256 string) {
	d.hands(func() {
		c := bytes.Clone(d.offered[sha256])
		c[len(c)/2] ^= 1
		d.offered[sha256] = c
	})
}

// WithdrawBlob takes a content from the fleet; the device keeps what it has.
func (d *Device) WithdrawBlob(sha256 string) { d.hands(func() { delete(d.offered, sha256) }) }

// DropBlob takes a content off the device.
func (d *Device) DropBlob(sha256 string) { d.hands(func() { delete(d.blobs, sha256) }) }

func blobDigest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func blobResource(sum string) topology.Resource { return topology.Resource("blob:" + sum) }
