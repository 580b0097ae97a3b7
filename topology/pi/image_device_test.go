//go:build device

package pi

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

func TestEnsureImage(t *testing.T) { // cases 79, 80
	_, c := box(t)
	r, addr := serveRegistry(t)
	image := addr + "/ct:1"
	t.Cleanup(func() { sh(t, "podman rmi -f "+image+" || true") })
	r.put(t, "ct:1", layerOfBusybox(t))
	r.fail.Store(429)
	_, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image})
	wantCode(t, err, topology.CodeImage, image)
	r.fail.Store(401)
	_, err = c.EnsureImage(t.Context(), topology.ImageRequest{Image: image})
	wantCode(t, err, topology.CodeImage, image)
	r.fail.Store(0)
	_, err = c.EnsureImage(t.Context(), topology.ImageRequest{Image: addr + "/ct:no-such-tag"})
	wantCode(t, err, topology.CodeImage, "no-such-tag")
	digest, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image})
	if err != nil {
		t.Fatal(err)
	}
	if known := sh(t, "podman image inspect -f '{{.RepoDigests}}' "+image); !strings.Contains(known, addr+"/ct@"+digest) {
		t.Errorf("digest %s, podman knows %s", digest, known)
	}
	r.fail.Store(500) // it is here: nobody is asked
	if again, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image}); again != digest || err != nil {
		t.Errorf("%s, %v", again, err)
	}
	for _, ref := range []string{addr + "/ct@" + digest, addr + "/ct:1@" + digest} {
		if again, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: ref}); again != digest || err != nil {
			t.Errorf("%s: %s, %v", ref, again, err)
		}
	}
	cfg := config("ct-pulled")
	cfg.Image, cfg.Command = addr+"/ct:1@"+digest, nil
	run(t, c, cfg)
	if st := look(t, c, "ct-pulled"); st.Digest != digest || st.State != "running" {
		t.Errorf("%+v", st)
	}
	_, err = c.EnsureImage(t.Context(), topology.ImageRequest{Image: "127.0.0.1:1/nobody:1"})
	wantCode(t, err, topology.CodeImage, "127.0.0.1:1/nobody:1")
}

func TestDamagedImageStore(t *testing.T) { // case 94
	_, c := box(t)
	r, addr := serveRegistry(t)
	r.put(t, "own:1", layerOfBusybox(t), layer("stamp", []byte(time.Now().String())))
	image := addr + "/own:1"
	t.Cleanup(func() { sh(t, "podman rmi -f "+image+" || true") })
	if _, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image}); err != nil {
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
	wantCode(t, c.Run(t.Context(), cfg), topology.CodeImageStore, "damaged", image, "podman system check")
}

// A damaged image of a private registry is fetched again as it was fetched first: with the login of its container, which no
// other registry gets to see.
func TestDamagedPrivateImage(t *testing.T) { // case 94
	_, c := box(t)
	r, addr := serveRegistry(t)
	r.user, r.pass = "fleet", "c4n4ry"
	r.put(t, "shut:1", layerOfBusybox(t), layer("stamp", []byte(time.Now().String())))
	image := addr + "/shut:1"
	forgetImages(t, image)
	if _, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: image, Username: r.user, Password: []byte(r.pass)}); err != nil {
		t.Fatal(err)
	}
	cfg := config("ct-shut")
	cfg.Image, cfg.Command = image, []string{"/busybox", "sleep", "1d"}
	top := sh(t, "podman image inspect -f '{{.GraphDriver.Data.UpperDir}}' "+image)
	sh(t, "rm -f /var/lib/containers/storage/overlay/l/$(cat "+filepath.Dir(top)+"/link); rm -rf "+top)
	cfg.Login = &topology.Login{Username: r.user, Password: topology.SecretValue(r.pass)}
	run(t, c, cfg)
	if st := look(t, c, cfg.Name); st.State != "running" {
		t.Errorf("%+v", st)
	}
	if found := sh(t, "grep -rlF "+r.pass+" /etc /var/lib/containers /run/containers || true; journalctl --no-pager | grep -F "+r.pass+" || true"); found != "" {
		t.Errorf("the password is in %s", found)
	}
}

// A damaged image that comes from no registry is named, and stays: nobody could bring it back.
func TestDamagedLocalImage(t *testing.T) { // case 94
	_, c := box(t)
	r, addr := serveRegistry(t)
	r.put(t, "local:1", layerOfBusybox(t), layer("stamp", []byte(time.Now().String())))
	image := "localhost/ct-local:1"
	sh(t, "podman pull -q --tls-verify=false "+addr+"/local:1; podman tag "+addr+"/local:1 "+image+"; podman untag "+addr+"/local:1 "+addr+"/local:1")
	t.Cleanup(func() { sh(t, "podman rmi -f "+image+" || true") })
	cfg := config("ct-local")
	cfg.Image, cfg.Command = image, []string{"/busybox", "sleep", "1d"}
	top := sh(t, "podman image inspect -f '{{.GraphDriver.Data.UpperDir}}' "+image)
	sh(t, "rm -f /var/lib/containers/storage/overlay/l/$(cat "+filepath.Dir(top)+"/link); rm -rf "+top)
	wantCode(t, c.Run(t.Context(), cfg), topology.CodeImageStore, image, "comes from no registry", "podman system check")
	sh(t, "podman image exists "+image)
}

func TestSocketIsStartedWhenNeeded(t *testing.T) {
	_, c := box(t)
	sh(t, "systemctl stop podman.socket podman.service")
	if _, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: busybox}); err != nil {
		t.Fatal(err)
	}
}
