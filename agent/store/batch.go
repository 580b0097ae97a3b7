package store

import "encoding/binary"

// appendBatch appends a frame of records that are durable together or not at all.
// The frame has the seq of the last of them.
func appendBatch(b []byte, recs []record) []byte {
	if len(recs) == 1 {
		return appendFrame(b, recs[0].seq, recs[0].appendPayload)
	}
	return appendFrame(b, recs[len(recs)-1].seq, func(b []byte) []byte {
		b = append(b, kindBatch)
		b = binary.AppendUvarint(b, uint64(len(recs)))
		var one []byte
		for i := range recs {
			one = recs[i].appendPayload(one[:0])
			b = binary.AppendUvarint(b, uint64(len(one)))
			b = append(b, one...)
		}
		return b
	})
}

// records tells how many records the payload of a frame holds.
func records(payload []byte) uint64 {
	if len(payload) == 0 || payload[0] != kindBatch {
		return 1
	}
	r := reader{b: payload[1:]}
	return max(r.number(), 1)
}

// frame calls yield with every record of a frame, or with none if one of
// them cannot be read.
func (d decoder) frame(seq uint64, payload []byte, yield func(*record)) error {
	if len(payload) == 0 || payload[0] != kindBatch {
		rec, err := d.record(seq, payload)
		if err == nil {
			yield(&rec)
		}
		return err
	}
	r := reader{b: payload[1:]}
	n := r.number()
	if n > uint64(len(r.b)) || n > seq {
		return errRecord
	}
	recs := make([]record, 0, min(n, 16)) // n may be any number
	for i := range n {
		rec, err := d.record(seq-n+1+i, r.bytes())
		if err != nil {
			return err
		}
		recs = append(recs, rec)
	}
	if r.bad || len(r.b) > 0 {
		return errRecord
	}
	for i := range recs {
		yield(&recs[i])
	}
	return nil
}
