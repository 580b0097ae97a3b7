//go:build device

package pi

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// registryAddr is what the devices of these tests may ask without encryption.
const registryAddr = "127.0.0.1:5999"

// A registry serves images, as registries do, and can be broken. It takes nothing in.
type registry struct {
	fail atomic.Int32 // status to answer with
	user string       // who may ask; empty: everybody
	pass string

	mu    sync.Mutex
	blobs map[string][]byte
	tags  map[string]string // NAME:TAG to the digest of a manifest
	asked []string          // paths
	cut   map[string]int    // digest of a blob: break off after so many bytes, when hold returns, and from then on answer nothing
	hold  func()
	slow  bool // a MiB in a quarter of a second
	dead  bool
	look  func() // called while a blob is asked for
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// layer is the tar of one file, which may be run.
func layer(name string, content []byte) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), ModTime: time.Unix(1e9, 0)})
	_, _ = w.Write(content)
	_ = w.Close()
	return b.Bytes()
}

// noise is a layer that cannot be made smaller.
func noise(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b)
	return layer("noise-"+digestOf(b)[7:15], b)
}

func layerOfBusybox(t testing.TB) []byte {
	t.Helper()
	program, err := os.ReadFile("/usr/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	return layer("busybox", program)
}

// put publishes an image under NAME:TAG and returns its digest. The first layer has /busybox.
func (r *registry) put(t testing.TB, name string, layers ...[]byte) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := func(b []byte) map[string]any {
		r.blobs[digestOf(b)] = b
		return map[string]any{"digest": digestOf(b), "size": len(b)}
	}
	var list []any
	var ids []string
	for _, l := range layers {
		d := keep(l)
		d["mediaType"] = "application/vnd.oci.image.layer.v1.tar"
		list, ids = append(list, d), append(ids, digestOf(l))
	}
	conf, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{"Cmd": []string{"/busybox", "sh", "-c", "trap 'exit 0' TERM; /busybox sleep 1d & wait"}}, "rootfs": map[string]any{"type": "layers", "diff_ids": ids},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := keep(conf)
	c["mediaType"] = "application/vnd.oci.image.config.v1+json"
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": ociManifest, "config": c, "layers": list})
	if err != nil {
		t.Fatal(err)
	}
	keep(manifest)
	r.tags[name] = digestOf(manifest)
	return digestOf(manifest)
}

const ociManifest = "application/vnd.oci.image.manifest.v1+json"

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if code := r.fail.Load(); code != 0 {
		w.WriteHeader(int(code))
		return
	}
	if user, pass, _ := req.BasicAuth(); user != r.user || pass != r.pass {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	r.asked = append(r.asked, req.Method+" "+req.URL.Path)
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/") // v2/NAME/manifests/REF
	var digest string
	if len(parts) == 4 {
		digest = parts[3]
		if d := r.tags[parts[1]+":"+parts[3]]; parts[2] == "manifests" && d != "" {
			digest = d
		}
	}
	blob, known := r.blobs[digest]
	cut, cuts := r.cut[digest]
	dead, look, slow := r.dead, r.look, r.slow
	r.mu.Unlock()
	switch {
	case dead:
		panic(http.ErrAbortHandler)
	case len(parts) == 1:
	case !known:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`)
	case parts[2] == "manifests":
		w.Header().Set("Content-Type", ociManifest)
		w.Header().Set("Docker-Content-Digest", digest)
		w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
		_, _ = w.Write(blob)
	default:
		if look != nil {
			look()
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
		if cuts {
			_, _ = w.Write(blob[:cut])
			w.(http.Flusher).Flush()
			r.hold()
			r.mu.Lock()
			r.dead = true
			r.mu.Unlock()
			panic(http.ErrAbortHandler)
		}
		for tick := time.Tick(time.Second / 4); slow && len(blob) > 1<<20; blob = blob[1<<20:] {
			_, _ = w.Write(blob[:1<<20])
			<-tick
		}
		_, _ = w.Write(blob)
	}
}

// requests are those since it was asked last.
func (r *registry) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.asked
	r.asked = nil
	return out
}

func serveRegistry(t *testing.T) (*registry, string) {
	t.Helper()
	r := &registry{blobs: map[string][]byte{}, tags: map[string]string{}, cut: map[string]int{}}
	l, err := net.Listen("tcp", registryAddr)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: r}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return r, registryAddr
}
