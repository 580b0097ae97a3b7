package wire

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Several operations can wait for one device: people approve different things, and a device is away. They are stored under
// its one key, each as its signer made it, so that a device fetches once and nothing of one can replace another. A single
// operation is stored as it is.
//
//	"CTB1" | u8 count | count × ( u32 length | frame )

// MaxOperations is how many operations can wait for one device.
const MaxOperations = 8

const (
	bundleMagic = "CTB1"
	maxBundle   = 512 << 10
)

// JoinOperations gives what is stored for the frames of operations, in the order in which they are to be done.
func JoinOperations(frames ...[]byte) ([]byte, error) {
	if len(frames) == 1 {
		return frames[0], nil
	}
	if len(frames) == 0 || len(frames) > MaxOperations {
		return nil, fmt.Errorf("cannot store %d operations for one device: 1 to %d can wait", len(frames), MaxOperations)
	}
	b := append([]byte(bundleMagic), byte(len(frames)))
	for _, f := range frames {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	if len(b) > maxBundle {
		return nil, fmt.Errorf("cannot store %d operations for one device: they have %d bytes, and %d fit; wait until some are done", len(frames), len(b), maxBundle)
	}
	return b, nil
}

// SplitOperations gives the frames of what is stored. They point into b, and are neither verified nor read. Every error is a
// [*Refusal].
func SplitOperations(b []byte) ([][]byte, error) {
	if !strings.HasPrefix(string(b[:min(len(b), len(bundleMagic))]), bundleMagic) {
		return [][]byte{b}, nil
	}
	if len(b) > maxBundle {
		return nil, refuse(CodeTooLarge, "operations of %d bytes, at most %d are read", len(b), maxBundle)
	}
	bad := refuse(CodeMalformed, "the list of operations is not as it is written")
	rest := b[len(bundleMagic):]
	if len(rest) == 0 || rest[0] < 2 || rest[0] > MaxOperations {
		return nil, bad
	}
	frames := make([][]byte, rest[0])
	rest = rest[1:]
	for i := range frames {
		if len(rest) < 4 {
			return nil, bad
		}
		n := uint64(binary.BigEndian.Uint32(rest))
		if rest = rest[4:]; n > uint64(len(rest)) {
			return nil, bad
		}
		frames[i], rest = rest[:n:n], rest[n:]
	}
	if len(rest) > 0 {
		return nil, bad
	}
	return frames, nil
}
