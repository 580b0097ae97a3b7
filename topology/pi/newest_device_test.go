//go:build device

package pi

import (
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// forgetImages takes away what tests have fetched, and what we remember of it.
func forgetImages(t *testing.T, images ...string) {
	t.Cleanup(func() {
		for _, image := range images {
			sh(t, "podman rmi -f "+image+" 2>&1 || true")
		}
		sh(t, `podman images --format '{{.Repository}}:{{.Tag}}' | grep ^localhost/continuo/ | xargs -r podman rmi -f 2>&1`)
	})
}

func TestTagThatMoves(t *testing.T) { // cases 77, 79
	_, c := box(t)
	r, addr := serveRegistry(t)
	image := addr + "/moves:1"
	forgetImages(t, image)
	one := r.put(t, "moves:1", layerOfBusybox(t), layer("one", []byte("1")))
	ask := topology.ImageRequest{Image: image, Ask: true}
	if got, err := c.EnsureImage(t.Context(), ask); got != one || err != nil {
		t.Fatal(got, err)
	}
	cfg := config("ct-moves")
	cfg.Image, cfg.Command = image, nil
	run(t, c, cfg)
	st := look(t, c, cfg.Name)
	if st.Digest != one || st.Here != one || st.Newest != one || st.Image != image {
		t.Fatalf("%+v", st)
	}
	r.requests()
	if got, err := c.EnsureImage(t.Context(), ask); got != one || err != nil {
		t.Fatal(got, err)
	}
	t.Logf("number: to ask whether a tag has moved takes %d requests: %s", len(r.asked), r.requests())

	two := r.put(t, "moves:1", layerOfBusybox(t), layer("two", []byte("2")))
	if got, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image}); got != one || err != nil || len(r.requests()) > 0 {
		t.Errorf("an image that is here was asked for: %s, %v", got, err)
	}
	if got, err := c.EnsureImage(t.Context(), ask); got != two || err != nil {
		t.Fatal(got, err)
	}
	for range 2 { // what was asked for switches nothing, not by a restart either
		if now := look(t, c, cfg.Name); now.Digest != one || now.Here != one || now.Newest != two {
			t.Fatalf("%+v", now)
		}
		if err := c.Restart(t.Context(), cfg.Name); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.UseNewest(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	if now := look(t, c, cfg.Name); now.Digest != one || now.Here != two {
		t.Errorf("%+v", now)
	}
	if err := c.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if now := look(t, c, cfg.Name); now.Digest != two || now.Here != two || now.Newest != two {
		t.Errorf("%+v", now)
	}
	if err := c.UseNewest(t.Context(), busybox); err != nil { // nobody asked for it
		t.Error(err)
	}
	// A digest stays what it is, and nobody is asked.
	r.requests()
	if got, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: addr + "/moves@" + two, Ask: true}); got != two || err != nil || len(r.requests()) > 0 {
		t.Errorf("%s, %v", got, err)
	}
}

func TestRegistryThatCannotBeAsked(t *testing.T) { // cases 79, 80
	_, c := box(t)
	r, addr := serveRegistry(t)
	image := addr + "/asked:1"
	digest := r.put(t, "asked:1", layerOfBusybox(t))
	tls := httptest.NewTLSServer(nil)
	defer tls.Close()
	plain, err := net.Listen("tcp", "127.0.0.1:0") // speaks no TLS, and nobody allowed that
	if err != nil {
		t.Fatal(err)
	}
	unlisted := httptest.NewUnstartedServer(r)
	unlisted.Listener = plain
	unlisted.Start()
	defer unlisted.Close()
	here := map[string]string{
		"an unknown name": "registry.invalid/asked:1", "a certificate that nobody knows": strings.TrimPrefix(tls.URL, "https://") + "/asked:1",
		"no encryption": plain.Addr().String() + "/asked:1",
	}
	forgetImages(t, image, here["an unknown name"], here["a certificate that nobody knows"], here["no encryption"])
	if _, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image}); err != nil {
		t.Fatal(err)
	}
	cfg := config("ct-asked")
	cfg.Image, cfg.Command = image, nil
	run(t, c, cfg)
	before := look(t, c, cfg.Name)
	for _, status := range []int32{429, 500} {
		r.fail.Store(status)
		got, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image, Ask: true})
		wantCode(t, err, topology.CodeImageCheck, "cannot check image "+image, digest)
		if got != digest {
			t.Errorf("the last known digest is %q", got)
		}
		t.Log(err)
	}
	r.fail.Store(0)
	for what, name := range here {
		sh(t, "podman tag "+image+" "+name)
		_, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: name, Ask: true})
		wantCode(t, err, topology.CodeImageCheck, "cannot check image "+name)
		t.Logf("%s: %v", what, err)
	}
	if now := look(t, c, cfg.Name); now.ID != before.ID || now.State != "running" {
		t.Errorf("%+v", now)
	}
}

func TestPrivateRegistry(t *testing.T) { // G58
	_, c := box(t)
	r, addr := serveRegistry(t)
	image := addr + "/private:1"
	forgetImages(t, image)
	r.put(t, "private:1", layerOfBusybox(t))
	canary := "c4n4ry" + fmt.Sprint(os.Getpid())
	r.user, r.pass = "fleet", canary
	_, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image})
	wantCode(t, err, topology.CodeImage, "registry")
	_, err = c.EnsureImage(t.Context(), topology.ImageRequest{Image: image, Username: "fleet", Password: []byte("wrong" + canary)})
	wantCode(t, err, topology.CodeImage)
	if strings.Contains(err.Error(), canary) {
		t.Errorf("the text has the password: %v", err)
	}
	search := `grep -rlIF ` + canary + ` /var/lib/containers /run/containers /run/user /etc /root /tmp /var/tmp /dev/shm 2>/dev/null || true`
	var looked atomic.Int32
	r.look = func() {
		looked.Add(1)
		if found := sh(t, search); found != "" {
			t.Errorf("while it is fetched, the password is in %s", found)
		}
	}
	if _, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image, Username: "fleet", Password: []byte(canary)}); err != nil {
		t.Fatal(err)
	}
	if found := sh(t, search+"; journalctl --no-pager | grep -F "+canary+" || true"); found != "" || looked.Load() == 0 {
		t.Errorf("afterwards it is in %s (%d looks)", found, looked.Load())
	}
}

// A pull that breaks off is taken up where it was, by layers, and says how far it is.
func TestPullIsTakenUp(t *testing.T) {
	_, c := box(t)
	r, addr := serveRegistry(t)
	image := addr + "/large:1"
	forgetImages(t, image)
	layers := [][]byte{noise(2 << 20), noise(4 << 20), noise(12 << 20)}
	want := r.put(t, "large:1", layers...)
	r.cut[digestOf(layers[2])] = 6 << 20
	stored := func() int { return len(strings.Fields(sh(t, "ls /var/lib/containers/storage/overlay"))) }
	before := stored()
	r.hold = func() { // until the other layers are stored
		for began := time.Now(); stored() < before+2 && time.Since(began) < 20*time.Second; {
			runtime.Gosched()
		}
	}
	_, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image})
	wantCode(t, err, topology.CodeImage, image)
	t.Logf("broken off: %v", err)
	if got, err := c.Image(t.Context(), image); got != "" || err != nil {
		t.Errorf("half an image is here: %s, %v", got, err)
	}
	r.requests()
	r.mu.Lock()
	r.dead, r.slow = false, true
	delete(r.cut, digestOf(layers[2]))
	r.mu.Unlock()
	var last topology.Progress
	ctx := topology.WithProgress(t.Context(), func(p topology.Progress) { last = p })
	if got, err := c.EnsureImage(ctx, topology.ImageRequest{Image: image}); got != want || err != nil {
		t.Fatal(got, err)
	}
	asked := r.requests()
	for i, l := range layers {
		if again := slices.ContainsFunc(asked, func(p string) bool { return strings.HasSuffix(p, digestOf(l)) }); again != (i == 2) {
			t.Errorf("layer %d was asked for again: %v", i, again)
		}
	}
	if last.Total != int64(len(layers[2])) || last.Done == 0 {
		t.Errorf("the last progress was %+v", last)
	}
}

func TestCollectImages(t *testing.T) {
	_, c := box(t)
	if _, err := c.CollectImages(t.Context(), nil); err != nil { // what tests before this one have left
		t.Fatal(err)
	}
	r, addr := serveRegistry(t)
	names := []string{"unused", "kept", "runs", "foreign", "named", "byhand", "moved"}
	for _, n := range names {
		r.put(t, n+":1", layerOfBusybox(t), layer(n, []byte(n)))
		forgetImages(t, addr+"/"+n+":1")
	}
	forgetImages(t, "localhost/mine:1")
	fetch := func(ask bool, names ...string) {
		t.Helper()
		for _, n := range names {
			if _, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: addr + "/" + n + ":1", Ask: ask}); err != nil {
				t.Fatal(err)
			}
		}
	}
	sh(t, "podman pull -q --tls-verify=false "+addr+"/byhand:1")
	fetch(false, "unused", "kept", "runs", "foreign", "named")
	fetch(true, "moved", "byhand")
	cfg := config("ct-collect")
	cfg.Image, cfg.Command = addr+"/runs:1", nil
	run(t, c, cfg)
	sh(t, "podman create --name ct-theirs "+addr+"/foreign:1; podman tag "+addr+"/named:1 localhost/mine:1")
	t.Cleanup(func() { sh(t, "podman rm -f ct-theirs || true") })
	old := sh(t, "podman image inspect -f '{{.Id}}' "+addr+"/moved:1")
	r.put(t, "moved:1", layerOfBusybox(t), layer("moved", []byte("another")))
	fetch(true, "moved")

	keep := []string{addr + "/kept:1", addr + "/moved:1"}
	gone, err := c.CollectImages(t.Context(), keep)
	if want := []string{addr + "/unused:1"}; !slices.Equal(gone, want) || err != nil {
		t.Errorf("gone are %v, %v; want %v", gone, err, want)
	}
	if err := c.UseNewest(t.Context(), addr+"/moved:1"); err != nil {
		t.Fatal(err)
	}
	gone, err = c.CollectImages(t.Context(), keep)
	if want := []string{"sha256:" + old}; !slices.Equal(gone, want) || err != nil {
		t.Errorf("gone are %v, %v; want %v", gone, err, want)
	}
	for _, n := range []string{"kept", "runs", "foreign", "named", "byhand", "moved"} {
		if got, err := c.Image(t.Context(), addr+"/"+n+":1"); got == "" || err != nil {
			t.Errorf("%s went: %v", n, err)
		}
	}
	sh(t, "podman rm -f ct-theirs")
	if gone, err := c.CollectImages(t.Context(), keep); !slices.Equal(gone, []string{addr + "/foreign:1"}) || err != nil {
		t.Errorf("gone are %v, %v", gone, err)
	}
	if st := look(t, c, cfg.Name); st.State != "running" {
		t.Errorf("%+v", st)
	}
	if left := sh(t, `podman images -a --filter dangling=true --format '{{.ID}}'`); left != "" {
		t.Errorf("without a name are left: %s", left)
	}
}
