package pi

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

const (
	podmanSocket = "/run/podman/podman.sock"
	podmanUnit   = "podman.socket"
)

// podman is its REST service, started by its socket and gone again when idle.
type podman struct {
	services *services
	socket   string

	mu  sync.Mutex
	api *client.Client

	limit time.Duration // of one call; a broken container may hang its own
}

func (p *podman) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.api != nil {
		_ = p.api.Close()
	}
}

func (p *podman) client() (*client.Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.api == nil {
		api, err := client.New(client.WithHost("unix://" + p.socket))
		if err != nil {
			return nil, topology.FaultOf(err)
		}
		p.api = api
	}
	return p.api, nil
}

// call asks podman, after its socket was made to listen if it does not.
func (p *podman) call(ctx context.Context, limit time.Duration, ask func(context.Context, *client.Client) error) error {
	api, err := p.client()
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		call, cancel := context.WithTimeout(ctx, limit)
		err = ask(call, api)
		late := call.Err()
		cancel()
		_ = api.Close() // idle connections only: the service may end
		switch {
		case err == nil || errdefs.IsNotFound(err):
			return err
		case late != nil && ctx.Err() == nil:
			return topology.Faultf(topology.CodeTimeout, "podman gave no answer within %v", limit)
		case late != nil:
			return topology.FaultOf(late)
		case !unreached(err):
			return err
		case try > 0:
			return topology.Faultf(topology.CodeUnavailable, "cannot reach podman: %v", err)
		}
		if err := p.listen(ctx); err != nil {
			return err
		}
	}
}

func unreached(err error) bool {
	return client.IsErrConnectionFailed(err) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}

// listen starts podman's socket.
func (p *podman) listen(ctx context.Context) error {
	u, err := p.services.ask(ctx, podmanUnit)
	if err != nil {
		return err
	}
	if u.Load == topology.NotFound {
		return topology.Faultf(topology.CodeUnavailable, "podman is not installed: there is no %s", podmanUnit)
	}
	return p.services.job(ctx, "start", podmanUnit, start, "")
}

// inspect returns a container, or nil.
func (p *podman) inspect(ctx context.Context, name string) (*container.InspectResponse, error) {
	var out *container.InspectResponse
	err := p.call(ctx, p.limit, func(ctx context.Context, api *client.Client) error {
		r, err := api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		if err == nil {
			out = &r.Container
		}
		return err
	})
	if errdefs.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, podmanFault("inspect container "+name, err)
	}
	// The API also finds containers by the beginning of their id.
	if strings.TrimPrefix(out.Name, "/") != name {
		return nil, nil
	}
	return out, nil
}

// removeContainer removes a container by its id, running or not.
func (p *podman) removeContainer(ctx context.Context, id string) error {
	err := p.call(ctx, removeTimeout, func(ctx context.Context, api *client.Client) error {
		_, err := api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true})
		return err
	})
	if err != nil && !errdefs.IsNotFound(err) {
		return podmanFault("remove container "+id, err)
	}
	return nil
}

const removeTimeout = time.Minute

// Words of a storage that a power cut left damaged.
var damage = regexp.MustCompile(`(?i)layer not known|creating container storage|creating read-write layer|mounting storage|` +
	`/overlay/[0-9a-f]{64}/|/overlay/l/|layer.*(corrupt|incomplete|missing)|image is damaged`)

// podmanFault makes a fault of what podman answered.
func podmanFault(what string, err error) error {
	if f, ok := errors.AsType[*topology.Fault](err); ok {
		return topology.Faultf(f.Code, "cannot %s: %s", what, f.Text)
	}
	code := topology.FaultOf(err).Code
	switch text := err.Error(); {
	case strings.Contains(text, "no space left"):
		code = topology.CodeNoSpace
	case strings.Contains(text, "read-only file system"):
		code = topology.CodeReadOnly
	case damage.MatchString(text):
		code = topology.CodeImageStore
	}
	return topology.Faultf(code, "cannot %s: %v", what, err)
}
