package fleet

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// decodeReceipt reads what a device wrote. Fields that a newer agent added are ignored; a document of another version is
// not read at all. Whose it is says the subject, which the server vouches for.
func decodeReceipt(d Device, b []byte) (interpret.Receipt, error) {
	var r interpret.Receipt
	if len(b) > maxStatus {
		return r, fmt.Errorf("it has %d bytes, at most %d are read", len(b), maxStatus)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return interpret.Receipt{}, err
	}
	if r.APIVersion != score.APIVersion || r.Kind != interpret.ReceiptKind {
		return interpret.Receipt{}, fmt.Errorf("it is a %.40q of %.40q, this program reads %q of %q", r.Kind, r.APIVersion, interpret.ReceiptKind, score.APIVersion)
	}
	if err := wire.CheckOperationID(r.ID); err != nil {
		return interpret.Receipt{}, err
	}
	r.Device = d.ID
	return r, nil
}

// journal hands over the receipts of d as they are stored, from the oldest on, and then, if follow is true, every new
// one, until take returns false.
func (f *Fleet) journal(ctx context.Context, d Device, follow bool, take func(message) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	renewed, ended := f.onReconnect()
	defer ended()
	messages, hand := channel(ctx)
	n, stop, err := f.follow(ctx, wire.StreamJournal, []string{wire.JournalSubject(d)}, hand, nats.DeliverAll())
	if err != nil {
		return err
	}
	defer stop()
	left := backlog{}
	left.expect(wire.StreamJournal, n)
	late := time.NewTimer(patience)
	defer late.Stop()
	for follow || len(left) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-renewed:
			return errRelook
		case <-late.C:
			if len(left) > 0 {
				return fmt.Errorf("the server did not send everything within %s", patience)
			}
		case m := <-messages:
			left.took(m)
			if !take(m) {
				return nil
			}
		}
	}
	return nil
}

// History reads what d has done, the newest first: the receipts of operations, and those of passes that changed something
// without anybody asking. At most limit are given; 0 means all that the fleet has kept. What cannot be read is left out.
func (f *Fleet) History(ctx context.Context, d Device, limit int) ([]interpret.Receipt, error) {
	return f.receipts(ctx, d, limit, func(interpret.Receipt) bool { return true })
}

// Receipts is [Fleet.History] of operations only.
func (f *Fleet) Receipts(ctx context.Context, d Device, limit int) ([]interpret.Receipt, error) {
	return f.receipts(ctx, d, limit, func(r interpret.Receipt) bool { return r.Verb != interpret.VerbPass })
}

// Receipt reads the receipt of one operation. Of an id that was used for several, it is the receipt of the first, as far
// as there is one: the others were refused.
func (f *Fleet) Receipt(ctx context.Context, d Device, id string) (interpret.Receipt, bool, error) {
	all, err := f.receipts(ctx, d, 0, func(r interpret.Receipt) bool { return r.ID == id })
	if err != nil || len(all) == 0 {
		return interpret.Receipt{}, false, err
	}
	i := slices.IndexFunc(all, func(r interpret.Receipt) bool { return r.Result != interpret.ResultConflict })
	return all[max(i, 0)], true, nil
}

func (f *Fleet) receipts(ctx context.Context, d Device, limit int, wanted func(interpret.Receipt) bool) ([]interpret.Receipt, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	for {
		var out []interpret.Receipt
		err := f.journal(ctx, d, false, func(m message) bool {
			if r, err := decodeReceipt(d, m.data); err == nil && wanted(r) {
				// A device that starts sends again what may have been lost: the first place, and the last word, count.
				i := slices.IndexFunc(out, func(o interpret.Receipt) bool { return o.ID == r.ID && o.Request == r.Request && o.Verb == r.Verb })
				if i < 0 {
					out = append(out, r)
				} else {
					out[i] = r
				}
			}
			return true
		})
		if errors.Is(err, errRelook) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the receipts of %s: %w", d, f.explain(err))
		}
		slices.Reverse(out)
		if limit > 0 {
			out = out[:min(limit, len(out))]
		}
		return out, nil
	}
}

// WaitReceipt waits for the receipt of an operation until ctx ends. While the operation is still stored, it is the receipt
// of exactly that one, and not of another one that had the same id.
func (f *Fleet) WaitReceipt(ctx context.Context, d Device, id string) (interpret.Receipt, error) {
	fail := func(err error) (interpret.Receipt, error) {
		return interpret.Receipt{}, fmt.Errorf("%s has not answered operation %s: %w", d, id, f.explain(err))
	}
	if err := d.Check(); err != nil {
		return interpret.Receipt{}, err
	}
	doc, err := f.stored(ctx, wire.ApprovalKey(d))
	if err != nil {
		return fail(err)
	}
	request := ""
	for _, q := range readQuestions(doc.frame) {
		if q.operation.ID == id {
			request = hex.EncodeToString(q.digest)
		}
	}
	renewed, stop := f.onReconnect()
	defer stop()
	for {
		var got interpret.Receipt
		var unreadable error
		err := f.journal(ctx, d, true, func(m message) bool {
			if m.receipt != "" && m.receipt != id {
				return true
			}
			r, err := decodeReceipt(d, m.data)
			if err != nil && m.receipt == id {
				unreadable = fmt.Errorf("its answer cannot be read: %w", err)
				return false
			}
			if err != nil || r.ID != id || request != "" && r.Request != "" && r.Request != request {
				return true
			}
			got = r
			return false
		})
		switch {
		case unreadable != nil:
			return fail(unreadable)
		case err == nil:
			return got, nil
		case ctx.Err() != nil:
			return fail(ctx.Err())
		case errors.Is(err, errRelook):
			continue
		case f.nc.IsConnected():
			return fail(err) // it cannot be read, and waiting does not help
		}
		select {
		case <-ctx.Done():
		case <-renewed:
		}
	}
}
