package pi

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// checkTimeout bounds the quick check of podman's storage, which reads no content of layers.
const checkTimeout = 2 * time.Minute

// check has podman look at its own storage before that is blamed, and tells what it found. It
// repairs nothing: what is damaged beside the one image may be in use. A podman that is too
// old to check, before 5.2, finds nothing.
func (p *podman) check(ctx context.Context) string {
	var found struct {
		Errors                     bool
		Layers, Images, Containers map[string][]string // by id, what is wrong with it
	}
	err := p.call(ctx, checkTimeout, request{method: "POST", native: true, path: "/system/check", query: url.Values{"quick": {"true"}}}, into(&found))
	switch {
	case err != nil:
		return "podman cannot check its storage: " + err.Error()
	case len(found.Layers)+len(found.Images)+len(found.Containers) > 0:
		return fmt.Sprintf("podman system check names %d layers, %d images and %d containers that are damaged", len(found.Layers), len(found.Images), len(found.Containers))
	case found.Errors:
		return "podman system check finds damage, and does not say where"
	}
	return "podman system check --quick finds nothing"
}
