package store

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// A file starts with a head of 40 bytes, little endian:
//
//	0  magic "CONTINUO"
//	8  format version (4)
//	12 role (1) and 3 zero bytes
//	16 seq (8): the number of the snapshot, which is above that of every
//	   record in it (ledger), or of the snapshot that the file comes after
//	   (journal), or the generation (intent), or the number of the write (good
//	   version, receipt)
//	24 size of the body (8), 0 in a journal
//	32 crc32c of the body (4), 0 in a journal
//	36 crc32c of the 36 bytes before (4)
//
// Every later format keeps the head, so that an older agent can tell "newer"
// from "damaged". The body of ledgers and journals is a row of frames:
//
//	0  marker (4)
//	4  crc32c of what follows (4)
//	8  size of the payload (4)
//	12 seq (8) of its last record, growing by one with each record; 0 in a ledger
//	20 payload
const (
	magic     = "CONTINUO"
	version   = 2 // README.md says what each one brought
	headSize  = 40
	frameSize = 20
	marker    = "\xf1\x0a\xc7\x5e"
)

const (
	roleLedger  = 'L'
	roleJournal = 'J'
	roleIntent  = 'I'
	roleGood    = 'G'
	roleReceipt = 'R'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type head struct {
	role    byte
	seq     uint64
	version uint32 // that wrote the file; seal sets this one's
}

// seal fills in the head of file, whose first headSize bytes are reserved.
func (h head) seal(file []byte) {
	body := file[headSize:]
	copy(file, magic)
	binary.LittleEndian.PutUint32(file[8:], version)
	file[12], file[13], file[14], file[15] = h.role, 0, 0, 0
	binary.LittleEndian.PutUint64(file[16:], h.seq)
	binary.LittleEndian.PutUint64(file[24:], uint64(len(body)))
	var sum uint32
	if h.role != roleJournal {
		sum = crc32.Checksum(body, castagnoli)
	}
	binary.LittleEndian.PutUint32(file[32:], sum)
	binary.LittleEndian.PutUint32(file[36:], crc32.Checksum(file[:36], castagnoli))
}

type condition int

const (
	absent condition = iota
	sound
	broken
	newer
)

// parseHead judges the first bytes of a file.
func parseHead(file []byte, role byte) (head, condition) {
	if len(file) < headSize || string(file[:8]) != magic ||
		binary.LittleEndian.Uint32(file[36:]) != crc32.Checksum(file[:36], castagnoli) {
		return head{}, broken
	}
	v := binary.LittleEndian.Uint32(file[8:])
	if v > version {
		return head{}, newer
	} else if v == 0 {
		return head{}, broken // there never was one
	}
	if file[12] != role {
		return head{}, broken
	}
	return head{file[12], binary.LittleEndian.Uint64(file[16:]), v}, sound
}

// bodyOf returns the body of any file but a journal, if it is whole.
func bodyOf(file []byte) ([]byte, bool) {
	body := file[headSize:]
	ok := binary.LittleEndian.Uint64(file[24:]) == uint64(len(body)) &&
		binary.LittleEndian.Uint32(file[32:]) == crc32.Checksum(body, castagnoli)
	return body, ok
}

// appendFrame appends a frame to b, whose payload is what payload appends.
func appendFrame(b []byte, seq uint64, payload func([]byte) []byte) []byte {
	at := len(b)
	b = append(b, marker...)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, seq)
	b = payload(b)
	binary.LittleEndian.PutUint32(b[at+8:], uint32(len(b)-at-frameSize))
	binary.LittleEndian.PutUint32(b[at+4:], crc32.Checksum(b[at+8:], castagnoli))
	return b
}

// frames calls yield with every whole frame of body, in order. Behind damage
// it goes on with the next whole frame. It tells how many stretches between
// frames, and whether the end, could not be read.
func frames(body []byte, yield func(seq uint64, payload []byte)) (holes int, torn bool) {
	for len(body) > 0 {
		if seq, payload, ok := frame(body); ok {
			yield(seq, payload)
			body = body[frameSize+len(payload):]
			continue
		}
		next := -1
		for at := 1; ; at++ {
			i := bytes.Index(body[at:], []byte(marker))
			if i < 0 {
				return holes, true
			}
			at += i
			if _, _, ok := frame(body[at:]); ok {
				next = at
				break
			}
		}
		holes++
		body = body[next:]
	}
	return holes, false
}

// frame reads the frame at the start of b.
func frame(b []byte) (seq uint64, payload []byte, ok bool) {
	if len(b) < frameSize || string(b[:4]) != marker {
		return 0, nil, false
	}
	size := uint64(binary.LittleEndian.Uint32(b[8:]))
	if size > uint64(len(b)-frameSize) {
		return 0, nil, false
	}
	end := frameSize + int(size)
	if binary.LittleEndian.Uint32(b[4:]) != crc32.Checksum(b[8:end], castagnoli) {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint64(b[12:]), b[frameSize:end:end], true
}
