package natslink

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// Reach makes a connection of its own: one that is there already proves nothing (cases 104).
func TestReach(t *testing.T) {
	r := newRig(t)
	known := r.options()
	reach := func(change func(*Options)) error {
		o := known
		change(&o)
		l, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return l.Reach(ctx)
	}
	if err := reach(func(*Options) {}); err != nil {
		t.Errorf("the server is there: %v", err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	mute := silent.Addr().String()
	if err := reach(func(o *Options) { o.Servers = []string{"nats://" + mute} }); err == nil || !strings.Contains(err.Error(), mute) {
		t.Errorf("nobody answers at %s: %v", mute, err)
	}
	r.srv.RemoveDevice(pi1)
	if err := reach(func(*Options) {}); err == nil {
		t.Error("the server does not let this device in any more")
	}
	r.srv.Stop()
	if err := reach(func(*Options) {}); err == nil {
		t.Error("there is no server any more")
	}
}
