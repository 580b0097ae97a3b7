package container

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// TestDigestCoversEveryField: whatever is changed in what a container is made from, it is another container; by
// reflection, so that a field which somebody adds is covered or fails here.
func TestDigestCoversEveryField(t *testing.T) {
	full := func() topology.ContainerConfig {
		secret := topology.ContainerSecret{Name: "s", Fingerprint: "f", Env: "E", Target: "/t", Mode: 0o400, UID: 1, GID: 2}
		return topology.ContainerConfig{
			Name: "n", Image: "i", Entrypoint: []string{"e"}, Command: []string{"c"}, User: "u", WorkingDir: "/w", Hostname: "h", Env: []string{"A=1"},
			Secrets: []topology.ContainerSecret{secret}, Volumes: []string{"v"}, Tmpfs: []topology.ContainerTmpfs{{Target: "/t", Size: 1}}, Devices: []string{"d"},
			CapAdd: []string{"a"}, CapDrop: []string{"b"}, Network: "net", Ports: []string{"p"}, Memory: 1, CPU: 1, PIDs: 1,
			HealthCheck: &topology.ContainerHealthCheck{Command: []string{"h"}, Interval: time.Second, Timeout: time.Second, StartPeriod: time.Second, Retries: 1},
			LogDriver:   "l", LogSize: 1, Labels: []string{"l=1"}, StopSignal: "INT", StopTimeout: time.Second, Restart: "always", ReloadSignal: "HUP",
			Init: []topology.InitContainer{{
				Name: "n", Image: "i", Entrypoint: []string{"e"}, Command: []string{"c"}, User: "u", Env: []string{"A=1"}, Secrets: []topology.ContainerSecret{secret},
				Volumes: []string{"v"}, Timeout: time.Second,
			}},
		}
	}
	// What is no part of what a container is made from, or is no value of it.
	apart := map[string]bool{".Login": true, ".Never": true, ".SpecDigest": true, ".Mark": true, ".Replaces": true, ".Secrets[0].Value": true, ".Init[0].Secrets[0].Value": true}
	before := digest(full())
	seen := map[string]string{before: "nothing"}
	c := full()
	tried := 0
	each(reflect.ValueOf(&c).Elem(), "", func(path string) {
		if apart[path] {
			return
		}
		tried++
		got := digest(c)
		if other, same := seen[got]; same {
			t.Errorf("with another %s it has the digest that it has with another %s", path, other)
		}
		seen[got] = path
	})
	if digest(c) != before {
		t.Fatal("the test does not put back what it changes")
	}
	if tried < 70 {
		t.Errorf("%d changes were tried", tried)
	}
	t.Logf("%d changes", tried)
}

// TestConfigCoversEveryField: each field of a score is in what the container is made from, but for those about how it is
// brought and when it starts again.
func TestConfigCoversEveryField(t *testing.T) {
	full := func() score.Container {
		return score.Container{
			Name: "n", Image: "i", State: score.Running, Entrypoint: []string{"e"}, Command: []string{"c"}, User: "u", WorkingDir: "/w", Hostname: "h",
			Env: map[string]score.Value{"A": score.Text("1"), "B": score.FromSecret("s")}, Secrets: []score.SecretFile{{Secret: "s", Target: "/t", Mode: 0o400, UID: 1, GID: 2}},
			Volumes: []score.Volume{{Source: "/a", Target: "/b"}}, Tmpfs: []score.Tmpfs{{Target: "/t", Size: 1}}, Devices: []score.Device{{Host: "/dev/a", Container: "/dev/b", Rights: "r"}},
			Capabilities: &score.KernelCapabilities{Add: []string{"a"}, Drop: []string{"b"}}, Network: "net", Ports: []score.Port{{Host: 1, Container: 2}},
			Limits:      &score.ContainerLimits{Memory: 1, CPU: 1, PIDs: 1},
			HealthCheck: &score.HealthCheck{Command: []string{"h"}, Interval: 1, Timeout: 1, StartPeriod: 1, Retries: 1},
			Log:         &score.ContainerLog{Driver: score.LogFile, MaxSize: 1}, Labels: map[string]string{"l": "1"}, StopSignal: "INT", StopTimeout: 1, Restart: "always", ReloadSignal: "HUP",
			Init: []score.InitContainer{{
				Name: "n", Image: "i", Entrypoint: []string{"e"}, Command: []string{"c"}, User: "u", Env: map[string]score.Value{"A": score.Text("1"), "B": score.FromSecret("s")},
				Volumes: []score.Volume{{Source: "/a", Target: "/b"}}, Timeout: 1,
			}},
		}
	}
	apart := map[string]bool{".Pull": true, ".State": true, ".Registry": true, ".RestartOn": true, ".ReloadOn": true}
	have := secrets{"s": {fingerprint: "f"}}
	of := func(c score.Container) string { return config(c, have, "m/s").SpecDigest }
	before := of(full())
	c := full()
	each(reflect.ValueOf(&c).Elem(), "", func(path string) {
		if !apart[path] && of(c) == before {
			t.Errorf("with another %s it is the same container", path)
		}
	})
	if of(c) != before {
		t.Fatal("the test does not put back what it changes")
	}
	stopped := full()
	if stopped.State = score.Stopped; of(stopped) == before { // of other words there are none
		t.Error("stopped it is the same container")
	}
	have["s"] = value{fingerprint: "g"}
	if of(full()) == before {
		t.Error("with another value of its secret it is the same container")
	}
}

// each changes every leaf of v, one after the other, and puts it back.
func each(v reflect.Value, path string, changed func(path string)) {
	with := func(other reflect.Value) {
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		v.Set(other)
		changed(path)
		v.Set(was)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			each(v.Field(i), path+"."+v.Type().Field(i).Name, changed)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			each(v.Elem(), path, changed)
		}
		with(reflect.Zero(v.Type()))
		if v.IsNil() { // it was left out, so that it may be there
			with(reflect.New(v.Type().Elem()))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			with(reflect.ValueOf([]byte("other")).Convert(v.Type()))
			return
		}
		if v.Len() == 0 {
			with(reflect.MakeSlice(v.Type(), 1, 1))
			return
		}
		each(v.Index(0), path+"[0]", changed)
		with(reflect.Zero(v.Type()))
		more := reflect.MakeSlice(v.Type(), 0, 2)
		with(reflect.AppendSlice(reflect.AppendSlice(more, v), v))
	case reflect.Map:
		if v.Len() == 0 {
			return
		}
		with(reflect.Zero(v.Type()))
		for _, key := range v.MapKeys() {
			other := reflect.MakeMap(v.Type())
			for _, k := range v.MapKeys() {
				other.SetMapIndex(k, v.MapIndex(k))
			}
			leaf := reflect.New(v.Type().Elem()).Elem()
			leaf.Set(v.MapIndex(key))
			if leaf.Kind() == reflect.String {
				leaf.SetString(leaf.String() + "x")
			} else {
				leaf.Set(reflect.ValueOf(score.Text("other")))
			}
			other.SetMapIndex(key, leaf)
			path := path
			func() {
				was := v.Interface()
				v.Set(other)
				changed(fmt.Sprintf("%s[%v]", path, key))
				v.Set(reflect.ValueOf(was))
			}()
		}
	case reflect.String:
		with(reflect.ValueOf(v.String() + "x").Convert(v.Type()))
	case reflect.Bool:
		with(reflect.ValueOf(!v.Bool()).Convert(v.Type()))
	case reflect.Int, reflect.Int64:
		with(reflect.ValueOf(v.Int() + int64(time.Second)).Convert(v.Type()))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		with(reflect.ValueOf(v.Uint() + 1024).Convert(v.Type()))
	default:
		if v.CanSet() {
			panic("container: the test cannot change " + path + " of type " + v.Type().String())
		}
	}
}
