package natslink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
)

const (
	// maxWindow is how many chunks of a content may be on their way at once. It is reached on a line that brings each
	// within fastChunk; on one that needs slowChunk there is one, because heartbeats wait behind them.
	maxWindow = 8
	fastChunk = 250 * time.Millisecond
	slowChunk = time.Second
	// blobPatience is how long a fetch waits for a connection before who wants the content hears of it. The fetch goes on
	// where it ended when it is tried again.
	blobPatience = 30 * time.Second
	blobTries    = 3
	blobPause    = 500 * time.Millisecond // before another of them, when nobody was there to answer
)

// A chunk is the answer to one request, and how long it took.
type chunk struct {
	data []byte
	err  error
	took time.Duration
}

// Fetch hands over the bytes of a content from an offset on, in order, up to size bytes in all; fewer, if the fleet has
// fewer. Nothing is verified but what the server says of its answers.
func (l *Link) Fetch(ctx context.Context, sha256 string, size, offset int64, take func([]byte) error) error {
	if err := wire.CheckBlobDigest(sha256); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next, skip, all := offset/wire.BlobChunk, offset%wire.BlobChunk, wire.BlobChunks(size)
	window := 1
	var pending []chan chunk
	for n := next; n < all; n++ {
		for ; next < all && len(pending) < window; next++ {
			c := make(chan chunk, 1)
			pending = append(pending, c)
			go func(n int64) { c <- l.chunk(ctx, sha256, n) }(next)
		}
		c := <-pending[0]
		pending = pending[1:]
		switch {
		case c.err != nil:
			return c.err
		case c.took > slowChunk:
			window = 1
		case c.took < fastChunk:
			window = min(window+1, maxWindow)
		}
		if err := take(c.data[min(skip, int64(len(c.data))):]); err != nil {
			return err
		}
		skip = 0
		if len(c.data) != wire.BlobChunk {
			return nil // the last one
		}
	}
	return nil
}

// chunk fetches one chunk. A connection that breaks meanwhile is waited for.
func (l *Link) chunk(ctx context.Context, sha256 string, n int64) chunk {
	var err error
	for range blobTries {
		var m *nats.Msg
		start := time.Now()
		m, err = l.requestOnline(ctx, wire.BlobFetchSubject(sha256, n))
		switch {
		case ctx.Err() != nil:
			return chunk{err: ctx.Err()}
		case errors.Is(err, nats.ErrNoResponders): // so says a server that is about to stop, too
			err = errors.New("the fleet has no store of contents; its operator creates it with: continuo setup")
			sleep(ctx, blobPause)
			continue
		case err != nil:
			// The library knows that a connection is gone a moment before this link hears of it: no try is spent on that moment.
			if time.Since(start) < blobPause {
				sleep(ctx, blobPause)
			}
			continue
		}
		switch status := m.Header.Get("Status"); {
		case status == "404":
			return chunk{err: errors.New("the fleet does not have it, or not all of it; who publishes what needs it stores it again")}
		case status != "":
			err = fmt.Errorf("the server answers %s %s", status, m.Header.Get("Description"))
		default:
			return chunk{data: m.Data, took: time.Since(start)}
		}
	}
	return chunk{err: err}
}

// requestOnline asks when there is a connection.
func (l *Link) requestOnline(ctx context.Context, subject string) (*nats.Msg, error) {
	waiting, stop := context.WithTimeout(ctx, blobPatience)
	defer stop()
	if _, err := l.conn(waiting); err != nil {
		return nil, errOffline
	}
	return l.request(ctx, nats.NewMsg(subject), fetchTimeout)
}
