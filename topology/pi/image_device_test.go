//go:build device

package pi

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

type registry struct {
	dir  string
	fail atomic.Int32 // status to answer with
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if code := r.fail.Load(); code != 0 {
		w.WriteHeader(int(code))
		return
	}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/") // v2/NAME/manifests/REF
	var index struct {
		Manifests []struct{ Digest, MediaType string }
	}
	data, err := os.ReadFile(r.dir + "/index.json")
	if err == nil {
		err = json.Unmarshal(data, &index)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	digest := index.Manifests[0].Digest
	switch {
	case len(parts) == 1:
		return
	case len(parts) == 4 && parts[2] == "manifests" && (parts[3] == "1" || parts[3] == digest):
		w.Header().Set("Content-Type", index.Manifests[0].MediaType)
		w.Header().Set("Docker-Content-Digest", digest)
	case len(parts) == 4 && parts[2] == "blobs":
		digest = parts[3]
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`)
		return
	}
	http.ServeFile(w, req, r.dir+"/blobs/"+strings.Replace(digest, ":", "/", 1))
}

func serveRegistry(t *testing.T) (*registry, string) {
	t.Helper()
	r := &registry{dir: t.TempDir() + "/image"}
	sh(t, "podman save --format oci-dir -o "+r.dir+" "+busybox+" 2>&1")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: r}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	conf := "/etc/containers/registries.conf.d/ct-test.conf"
	put(t, conf, fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n", l.Addr()))
	t.Cleanup(func() { _ = os.Remove(conf) })
	sh(t, "systemctl stop podman.service") // it reads the file when it starts
	return r, l.Addr().String()
}

func TestEnsureImage(t *testing.T) { // cases 79, 80
	_, c := box(t)
	r, addr := serveRegistry(t)
	image := addr + "/ct:1"
	t.Cleanup(func() { sh(t, "podman rmi -f "+image+" || true") })
	r.fail.Store(429)
	_, err := c.EnsureImage(t.Context(), image)
	wantCode(t, err, topology.CodeImage, image)
	r.fail.Store(401)
	_, err = c.EnsureImage(t.Context(), image)
	wantCode(t, err, topology.CodeImage, image)
	r.fail.Store(0)
	_, err = c.EnsureImage(t.Context(), addr+"/ct:no-such-tag")
	wantCode(t, err, topology.CodeImage, "no-such-tag")
	digest, err := c.EnsureImage(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	if known := sh(t, "podman image inspect -f '{{.RepoDigests}}' "+image); !strings.Contains(known, addr+"/ct@"+digest) {
		t.Errorf("digest %s, podman knows %s", digest, known)
	}
	r.fail.Store(500) // it is here: nobody is asked
	if again, err := c.EnsureImage(t.Context(), image); again != digest || err != nil {
		t.Errorf("%s, %v", again, err)
	}
	for _, ref := range []string{addr + "/ct@" + digest, addr + "/ct:1@" + digest} {
		if again, err := c.EnsureImage(t.Context(), ref); again != digest || err != nil {
			t.Errorf("%s: %s, %v", ref, again, err)
		}
	}
	cfg := config("ct-pulled")
	cfg.Image = addr + "/ct:1@" + digest
	run(t, c, cfg)
	if st := look(t, c, "ct-pulled"); st.Digest != digest || st.State != "running" {
		t.Errorf("%+v", st)
	}
	_, err = c.EnsureImage(t.Context(), "127.0.0.1:1/nobody:1")
	wantCode(t, err, topology.CodeImage, "127.0.0.1:1/nobody:1")
}

func TestDamagedImageStore(t *testing.T) { // case 94
	_, c := box(t)
	r, addr := serveRegistry(t)
	// An image with a layer of its own.
	sh(t, "mkdir -p /tmp/ct-own; cp /usr/bin/busybox /tmp/ct-own/; date +%N >/tmp/ct-own/stamp; tar -C /tmp/ct-own -c . | podman import - localhost/ct-own:1 2>&1; rm -r "+
		r.dir+"; podman save --format oci-dir -o "+r.dir+" localhost/ct-own:1 2>&1; podman rmi -f localhost/ct-own:1")
	image := addr + "/own:1"
	t.Cleanup(func() { sh(t, "podman rmi -f "+image+" || true") })
	if _, err := c.EnsureImage(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	damage := func() {
		top := sh(t, "podman image inspect -f '{{.GraphDriver.Data.UpperDir}}' "+image)
		sh(t, "rm -f /var/lib/containers/storage/overlay/l/$(cat "+filepath.Dir(top)+"/link); rm -rf "+top)
	}
	cfg := config("ct-damaged")
	cfg.Image, cfg.Command = image, []string{"/busybox", "sleep", "1d"}
	damage()
	run(t, c, cfg)
	if st := look(t, c, cfg.Name); st.State != "running" {
		t.Errorf("%+v", st)
	}
	if err := c.RemoveContainer(t.Context(), cfg.Name); err != nil {
		t.Fatal(err)
	}
	damage()
	r.fail.Store(500)
	wantCode(t, c.Run(t.Context(), cfg), topology.CodeImageStore, "damaged", image)
}

func TestSocketIsStartedWhenNeeded(t *testing.T) {
	_, c := box(t)
	sh(t, "systemctl stop podman.socket podman.service")
	if _, err := c.EnsureImage(t.Context(), busybox); err != nil {
		t.Fatal(err)
	}
}
