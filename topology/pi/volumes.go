package pi

import (
	"context"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A memo remembers what podman said of things that hardly ever change: to ask starts its service.
type memo[S any] struct {
	mu    sync.Mutex
	known map[string]remembered[S]
}

type remembered[S any] struct {
	state S
	at    time.Time
}

func (m *memo[S]) of(name string, maxAge time.Duration, ask func() (S, error)) (S, error) {
	m.mu.Lock()
	k, known := m.known[name]
	m.mu.Unlock()
	if known && time.Since(k.at) < maxAge {
		return k.state, nil
	}
	st, err := ask()
	if err != nil {
		return st, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[string]remembered[S]{}
	}
	m.known[name] = remembered[S]{st, time.Now()}
	return st, nil
}

func (m *memo[S]) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, name)
}

// volumes are podman's.
type volumes struct {
	*containers
	known memo[topology.VolumeState]
}

// Volume returns the state of a volume.
func (v *volumes) Volume(ctx context.Context, name string) (topology.VolumeState, error) {
	if err := v.available(ctx); err != nil {
		return topology.VolumeState{}, err
	}
	return v.known.of(name, v.maxAge, func() (topology.VolumeState, error) { return v.podman.volume(ctx, name) })
}

func (p *podman) volume(ctx context.Context, name string) (st topology.VolumeState, err error) {
	var found struct {
		Name, Driver, Mountpoint, CreatedAt string
		Labels                              map[string]string
	}
	err = p.call(ctx, p.limit, request{method: "GET", path: "/volumes/" + name}, into(&found))
	if notFound(err) || err == nil && found.Name != name { // podman may take the beginning of a name
		return st, nil
	}
	if err != nil {
		return st, podmanFault("inspect volume "+name, err)
	}
	st = topology.VolumeState{Present: true, Driver: found.Driver, Mountpoint: found.Mountpoint, Mark: topology.Mark(found.Labels[ownerLabel])}
	if t, err := time.Parse(time.RFC3339Nano, found.CreatedAt); err == nil {
		st.Since = t
	}
	return st, nil
}

// MakeVolume makes an empty volume.
func (v *volumes) MakeVolume(ctx context.Context, name string, mark topology.Mark) error {
	if err := v.available(ctx); err != nil {
		return err
	}
	defer v.known.forget(name)
	switch st, err := v.podman.volume(ctx, name); {
	case err != nil:
		return err
	case st.Present && st.Mark == mark:
		return nil
	case st.Present:
		return foreignVolume(name)
	}
	err := v.podman.call(ctx, v.podman.limit, request{method: "POST", path: "/volumes/create", body: map[string]any{
		"Name": name, "Driver": "local", "Labels": map[string]string{ownerLabel: string(mark)},
	}}, nil)
	if err != nil {
		return podmanFault("make volume "+name, err)
	}
	// Made by somebody else in the meantime, it does not have our mark.
	if st, err := v.podman.volume(ctx, name); err != nil || st.Mark != mark {
		if err == nil {
			err = foreignVolume(name)
		}
		return err
	}
	return v.podman.flush(ctx)
}

func foreignVolume(name string) error {
	return topology.Faultf(topology.CodeForeign, "the volume %s was made by somebody else; leave it out of the scores, remove it, or choose another name", name)
}

// RemoveVolume removes a volume with its data.
func (v *volumes) RemoveVolume(ctx context.Context, name string) error {
	if err := v.available(ctx); err != nil {
		return err
	}
	defer v.known.forget(name)
	switch st, err := v.podman.volume(ctx, name); {
	case err != nil || !st.Present:
		return err
	case st.Mark == "":
		return foreignVolume(name)
	}
	err := v.podman.call(ctx, removeTimeout, request{method: "DELETE", path: "/volumes/" + name}, nil)
	if conflicts(err) {
		return topology.Faultf(topology.CodeInUse, "the volume %s stays, with its data: %v; remove the containers first", name, err)
	}
	if err != nil && !notFound(err) {
		return podmanFault("remove volume "+name, err)
	}
	return nil
}
