package pi

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

const badImage = "78ae451c80596696c8da3ce8be5b107455a3a26e8977ca5a876665177d045149"

// What podman says of its storage, as 5.4 does.
func TestStorageCheck(t *testing.T) { // case 94
	for _, tt := range []struct {
		name, answer string
		status       int
		text         string
		images       int
	}{
		{"sound", `{"Errors":false,"Layers":null,"Images":null,"Containers":null}`, 200, "finds nothing", 0},
		{"an image", `{"Errors":true,"Layers":{"ce9b":["layer ce9b: file integrity checksum failed for \"./f8\""]},"Images":{"` + badImage + `":["layer ce9b: …"]},"Containers":null}`,
			200, "1 layers, 1 images and 0 containers", 1},
		{"layers that nobody finished", `{"Errors":true,"Layers":{"a":["not accounted for"],"b":["x"]}}`, 200, "2 layers, 0 images", 0},
		{"it does not say where", `{"Errors":true}`, 200, "does not say where", 0},
		{"a podman that cannot", `{"message":"Not Found"}`, 404, "cannot check", 0},
		{"it fails", `{"message":"database is locked"}`, 500, "database is locked", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := fakePodman(t, time.Second, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("quick") != "true" || !strings.HasSuffix(r.URL.Path, "/libpod/system/check") {
					t.Errorf("asked for %s", r.URL)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.answer)
			})
			if got := p.check(t.Context()); !strings.Contains(got, tt.text) {
				t.Errorf("%q, want %q", got, tt.text)
			}
			found, err := p.look(t.Context(), time.Second)
			if (err != nil) != (tt.status != 200) || len(found.Images) != tt.images {
				t.Errorf("%+v, %v", found, err)
			}
		})
	}
}

// Damaged images are called what people call them, and there are not too many of them.
func TestDamagedImages(t *testing.T) {
	var d damagedImages
	if d.list() != "" || d.has(badImage) {
		t.Error("something is damaged from the beginning")
	}
	d.set(map[string][]string{badImage: {"x"}, "sha256:0123456789abcdef": {"x"}}, []imageSummary{
		{ID: badImage, RepoTags: []string{keepPrefix + "x:1", "registry/app:1"}}, {ID: "other", RepoTags: []string{"registry/app:2"}},
	})
	if got := d.list(); got != "0123456789ab, registry/app:1" {
		t.Errorf("named %q", got)
	}
	if !d.has(badImage) || !d.has("0123456789abcdef") || d.has("other") {
		t.Error("other images are damaged")
	}
	d.mended(badImage)
	if d.has(badImage) || d.list() != "0123456789ab" {
		t.Errorf("after it was mended: %q", d.list())
	}
	many := map[string][]string{}
	for i := range 2 * maxDamaged {
		many[fmt.Sprintf("%064d", i)] = nil
	}
	d.set(many, nil)
	if got := d.list(); len(d.names) > maxDamaged || len(got) > 200 || !strings.Contains(got, "more") {
		t.Errorf("%d are remembered as %q", len(d.names), got)
	}
}

// An image that came from no registry is not taken away, and is to blame all the same; a failure that it cannot have caused
// stays what it is.
func TestBlamesDamage(t *testing.T) {
	p := fakePodman(t, time.Second, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		fmt.Fprintf(w, `{"Id":"sha256:%s"}`, badImage)
	})
	c := &containers{podman: p}
	cfg := topology.ContainerConfig{Name: "web", Image: "localhost/app:1"}
	failed := topology.Faultf(topology.CodeExited, "it ended with status 127")
	if err := c.mend(t.Context(), cfg, failed); err != failed {
		t.Errorf("nothing is damaged, and it says %v", err)
	}
	p.damaged.set(map[string][]string{badImage: nil}, nil)
	wantCode(t, c.mend(t.Context(), cfg, failed), topology.CodeImageStore, "status 127", "localhost/app:1", "power cut")
	for _, other := range []error{nil, topology.Faultf(topology.CodeTimeout, "late"), topology.Faultf(topology.CodeForeign, "not ours")} {
		if err := c.mend(t.Context(), cfg, other); err != other {
			t.Errorf("%v became %v", other, err)
		}
	}
}
