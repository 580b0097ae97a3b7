package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// A SetupResult is what Setup made, and what it found to be otherwise than it must be.
type SetupResult struct {
	Created     []string     `json:"created"`
	Differences []Difference `json:"differences"`
}

// A Difference is one setting of a stream that is not as it must be.
type Difference struct {
	Stream string `json:"stream"`
	Field  string `json:"field"`
	Have   string `json:"have"`
	Want   string `json:"want"`
}

func (d Difference) String() string {
	return fmt.Sprintf("stream %s: %s is %s, and must be %s", d.Stream, d.Field, d.Have, d.Want)
}

// Setup creates the streams that are missing, with so many replicas (0 means 1). It changes and deletes nothing that is
// there: what differs is for a person to judge, because a wrong repair can lose data or open the store to devices.
func (f *Fleet) Setup(ctx context.Context, replicas int) (SetupResult, error) {
	var r SetupResult
	for _, want := range wire.Streams(max(replicas, 1)) {
		ctx, cancel := f.within(ctx)
		defer cancel()
		s, err := f.js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			if s, err = f.create(ctx, want); err == nil {
				r.Created = append(r.Created, want.Name)
			}
		}
		if err != nil {
			return r, fmt.Errorf("cannot set up stream %s: %w", want.Name, f.explain(err))
		}
		differences, err := compare(want, s.CachedInfo().Config)
		if err != nil {
			return r, err
		}
		r.Differences = append(r.Differences, differences...)
	}
	return r, nil
}

func (f *Fleet) create(ctx context.Context, want wire.Stream) (jetstream.Stream, error) {
	b, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	var config jetstream.StreamConfig
	if err := json.Unmarshal(b, &config); err != nil {
		return nil, err
	}
	return f.js.CreateStream(ctx, config)
}

// compare looks at every setting that we decide about. One that we leave to the server is not compared.
func compare(want wire.Stream, config jetstream.StreamConfig) ([]Difference, error) {
	b, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("cannot compare stream %s: %w", want.Name, err)
	}
	var have wire.Stream
	if err := json.Unmarshal(b, &have); err != nil {
		return nil, fmt.Errorf("cannot compare stream %s: %w", want.Name, err)
	}
	var out []Difference
	w, h := reflect.ValueOf(want), reflect.ValueOf(have)
	for i := range w.NumField() {
		name, _, _ := strings.Cut(w.Type().Field(i).Tag.Get("json"), ",")
		if name == "duplicate_window" && w.Field(i).IsZero() || name == "compression" && w.Field(i).IsZero() && h.Field(i).String() == "none" {
			continue
		}
		if !reflect.DeepEqual(w.Field(i).Interface(), h.Field(i).Interface()) {
			out = append(out, Difference{want.Name, name, show(h.Field(i)), show(w.Field(i))})
		}
	}
	return out, nil
}

func show(v reflect.Value) string {
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return fmt.Sprint(v.Interface())
	}
	return string(b)
}
