package pi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

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
	limit    time.Duration // of one call; a broken container may hang its own
	http     *http.Client

	plaintext []string // registries that may be asked without encryption
	pulling   lanes
	damaged   damagedImages
}

func newPodman(s *services, socket string, limit time.Duration) *podman {
	return &podman{services: s, socket: socket, limit: limit, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true, // an open connection keeps the service from ending
	}}}
}

// A request is one call of the API that podman shares with Docker: the fields that are
// read here have been the same in it since podman 3.
type request struct {
	method, path string // the path is below the version
	native       bool   // of the API that is podman's own, for what Docker's does not have
	query        url.Values
	header       map[string]string
	body         any // nil: none
}

const (
	apiVersion    = "/v1.41"
	nativeVersion = "/v4.0.0/libpod"
)

// A refusal is what podman has against a request.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func notFound(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == http.StatusNotFound
}

func conflicts(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == http.StatusConflict
}

// call asks podman, after its socket was made to listen if it does not. The answer goes
// to read, unless that is nil.
func (p *podman) call(ctx context.Context, limit time.Duration, q request, read func(io.Reader) error) error {
	for try := 0; ; try++ {
		call, cancel := context.WithTimeout(ctx, limit)
		err := p.ask(call, q, read)
		late := call.Err()
		cancel()
		switch {
		case err == nil || notFound(err):
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

func (p *podman) ask(ctx context.Context, q request, read func(io.Reader) error) error {
	var body io.Reader
	if q.body != nil {
		b, err := json.Marshal(q.body)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	version := apiVersion
	if q.native {
		version = nativeVersion
	}
	u := url.URL{Scheme: "http", Host: "podman", Path: version + q.path, RawQuery: q.query.Encode()}
	r, err := http.NewRequestWithContext(ctx, q.method, u.String(), body)
	if err != nil {
		return err
	}
	for key, value := range q.header {
		r.Header.Set(key, value)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := p.http.Do(r)
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err // without the address, which nobody knows
	} else if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return refused(answer)
	}
	if read == nil {
		return nil
	}
	return read(answer.Body)
}

// refused reads podman's words, if it has any.
func refused(answer *http.Response) error {
	var said struct{ Message, Cause string }
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if json.Unmarshal(text, &said) != nil || said.Message == "" {
		said.Message = strings.TrimSpace("status " + answer.Status + " " + string(text))
	}
	status := answer.StatusCode
	if said.Cause == "no such container" { // it was found by its name, and is gone since
		status = http.StatusNotFound
	}
	return &refusal{status, said.Message}
}

// into decodes one answer. What is not asked for is not looked at: releases of podman
// spell some of it in two ways.
func into(out any) func(io.Reader) error {
	return func(r io.Reader) error {
		if err := json.NewDecoder(io.LimitReader(r, 16<<20)).Decode(out); err != nil {
			return fmt.Errorf("podman's answer makes no sense: %w", err)
		}
		return nil
	}
}

func unreached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
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

// inspected is what is read of a container.
type inspected struct {
	ID     string `json:"Id"`
	Name   string
	Image  string // its id
	Config struct {
		Image      string // as it was asked for
		Labels     map[string]string
		Env        []string
		Cmd        []string
		Entrypoint wordsOrText
		User       string
		WorkingDir string
	}
	HostConfig struct{ ReadonlyRootfs bool }
	State      struct {
		Status                string
		Running, Paused       bool
		ExitCode              int
		StartedAt, FinishedAt string
		Health                *struct{ Status string }
	}
}

// inspect returns a container, or nil.
func (p *podman) inspect(ctx context.Context, name string) (*inspected, error) {
	found, err := p.find(ctx, name)
	if err != nil || found == nil || found.Name != name {
		return nil, err
	}
	return found, nil
}

// find returns the container that podman takes a name for, or nil: if none has the name,
// that is one whose id begins so.
func (p *podman) find(ctx context.Context, name string) (*inspected, error) {
	out := new(inspected)
	err := p.call(ctx, p.limit, request{method: "GET", path: "/containers/" + name + "/json"}, into(out))
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, podmanFault("inspect container "+name, err)
	}
	out.Name = strings.TrimPrefix(out.Name, "/")
	return out, nil
}

// list returns every container, running or not.
func (p *podman) list(ctx context.Context) ([]topology.NamedContainer, error) {
	var all []struct {
		ID     string `json:"Id"`
		Names  []string
		Labels map[string]string
	}
	err := p.call(ctx, p.limit, request{method: "GET", path: "/containers/json", query: url.Values{"all": {"1"}}}, into(&all))
	if err != nil {
		return nil, podmanFault("list containers", err)
	}
	out := make([]topology.NamedContainer, len(all))
	for i, c := range all {
		out[i] = topology.NamedContainer{Name: c.ID, Mark: topology.Mark(c.Labels[ownerLabel])}
		if len(c.Names) > 0 {
			out[i].Name = strings.TrimPrefix(c.Names[0], "/")
		}
	}
	slices.SortFunc(out, func(a, b topology.NamedContainer) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// removeContainer removes a container by its id, running or not.
func (p *podman) removeContainer(ctx context.Context, id string) error {
	err := p.call(ctx, removeTimeout, request{method: "DELETE", path: "/containers/" + id, query: url.Values{"force": {"1"}}}, nil)
	if err != nil && !notFound(err) {
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
