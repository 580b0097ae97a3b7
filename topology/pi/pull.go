package pi

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// pullTimeout bounds one pull; slow links and large images are ordinary.
const pullTimeout = 2 * time.Hour

// fetch pulls an image, and flushes the storage: a power cut just afterwards would leave an
// image that is listed and cannot run. Here is what the reference stands for now, or nil: it
// goes on to stand for that, and what came is kept beside.
func (p *podman) fetch(ctx context.Context, r topology.ImageRequest, here *image) (*image, error) {
	before, err := p.imageList(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.pull(ctx, r); err != nil {
		return nil, err
	}
	got, err := p.image(ctx, r.Image)
	if err == nil && got == nil {
		err = topology.Faultf(topology.CodeImage, "%s was fetched and is not here", r.Image)
	}
	if err != nil {
		return nil, err
	}
	// One that was here is ours under this name, too, if it was ours under all others: else nobody would ever remove it.
	if !slices.ContainsFunc(before, func(im imageSummary) bool { return im.ID == got.ID && !im.ours() }) {
		if err := p.name(ctx, got.ID, keptName(r.Image, got.ID)); err != nil {
			return nil, err
		}
	}
	if r.Ask && !strings.Contains(r.Image, "@") {
		if err := p.name(ctx, got.ID, newestName(r.Image)); err != nil {
			return nil, err
		}
	}
	if here != nil && here.ID != got.ID {
		if err := p.name(ctx, here.ID, r.Image); err != nil {
			return nil, err
		}
	}
	if err := p.flush(ctx); err != nil {
		return nil, topology.Faultf(topology.FaultOf(err).Code, "cannot store %s durably: %v", r.Image, err)
	}
	return got, nil
}

// pull has podman ask the registry. What it has of the layers it does not fetch again.
func (p *podman) pull(ctx context.Context, r topology.ImageRequest) error {
	reference, plain := r.Image, slices.Contains(p.plaintext, registryOf(r.Image))
	if name, digest, ok := strings.Cut(reference, "@"); ok { // podman takes a tag or a digest, and the digest counts
		reference = repositoryOf(name) + "@" + digest
	}
	query := url.Values{"reference": {reference}, "policy": {"always"}, "compatMode": {"true"}, "tlsVerify": {"true"}}
	if plain {
		query.Set("tlsVerify", "false")
	}
	q := request{method: "POST", native: true, path: "/images/pull", query: query}
	if r.Username != "" {
		auth, err := json.Marshal(map[string]string{"username": r.Username, "password": string(r.Password)})
		if err != nil {
			return topology.FaultOf(err)
		}
		q.header = map[string]string{"X-Registry-Auth": base64.URLEncoding.EncodeToString(auth)}
	}
	err := p.call(ctx, pullTimeout, q, func(answer io.Reader) error {
		return pulled(answer, func(pr topology.Progress) { topology.TellProgress(ctx, pr) })
	})
	if err == nil {
		return nil
	}
	f := podmanFault("fetch "+r.Image, err).(*topology.Fault)
	if f.Code == topology.CodeUnknown || notFound(err) {
		f.Code = topology.CodeImage
	}
	switch text := err.Error(); {
	case !plain && strings.Contains(text, "HTTP response to HTTPS client"):
		f.Text += fmt.Sprintf("; it speaks plain HTTP: if that is meant to be, name %q under registries.plaintext in the configuration of this device", registryOf(r.Image))
	case r.Username == "" && (strings.Contains(text, "unauthorized") || strings.Contains(text, "authentication required")):
		f.Text += "; if the registry asks who wants it, say so under registry"
	}
	return f
}

// registryOf returns the host and port of a reference.
func registryOf(image string) string {
	host, _, _ := strings.Cut(image, "/")
	return host
}

// Bounds of what podman tells about a pull.
const (
	maxPullLine = 1 << 20
	maxLayers   = 1000 // whose progress is counted
)

// pulled reads what podman tells about a pull to its end: a failure is told there, too.
func pulled(r io.Reader, tell func(topology.Progress)) error {
	type amount struct{ Current, Total int64 }
	layers := map[string]amount{}
	var sum topology.Progress
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxPullLine)
	for lines.Scan() {
		var said struct {
			ID             string `json:"id"`
			Error          string
			ErrorDetail    struct{ Message string }
			ProgressDetail amount
		}
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			return fmt.Errorf("podman's answer makes no sense: %w", err)
		}
		if text := cmp.Or(said.ErrorDetail.Message, said.Error); text != "" {
			return errors.New(text)
		}
		now, was := said.ProgressDetail, layers[said.ID]
		if _, known := layers[said.ID]; now.Total <= 0 || now.Current < 0 || now.Current > now.Total || now.Total > 1<<50 || !known && len(layers) == maxLayers {
			continue
		}
		layers[said.ID] = now
		sum.Done += now.Current - was.Current
		sum.Total += now.Total - was.Total
		tell(sum)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("podman's answer broke off: %w", err)
	}
	return nil
}
