package natslink

import (
	"bytes"
	"net"
	"runtime"
	"strings"
	"testing"
)

// Whoever is between a device and its server speaks before TLS does: what never ends must not fill the memory.
func TestGreetingIsBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				rubbish := bytes.Repeat([]byte("x"), 64<<10)
				for err := error(nil); err == nil; {
					_, err = c.Write(rubbish)
				}
			}()
		}
	}()
	why := make(chan error, 8)
	r := newRig(t)
	o := r.options()
	o.Servers = []string{"nats://" + l.Addr().String()}
	o.Notice = func(err error) { why <- err }
	r.run(o)
	if err := <-why; err == nil || !strings.Contains(err.Error(), "greeting does not end") {
		t.Errorf("got %v", err)
	}
}

// The bound is for the first line only, and no byte is lost at it.
func TestGreetingPasses(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	text := strings.Repeat("a", maxGreeting-10) + "\r\n" + strings.Repeat("b", 2*maxGreeting)
	go func() {
		_, _ = there.Write([]byte(text))
		there.Close()
	}()
	var got bytes.Buffer
	if _, err := got.ReadFrom(&greeted{Conn: here}); err != nil || got.String() != text {
		t.Errorf("%d of %d bytes, %v", got.Len(), len(text), err)
	}
}

// Who reads the log sees whether there is a connection, and why not: once, and not at every attempt.
func TestNoticeOfConnections(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	p.setDown(true)
	notices := make(chan error, 64)
	o := r.options()
	o.Servers = []string{p.url()}
	o.Notice = func(err error) { notices <- err }
	l, _, stop := r.run(o)
	if err := <-notices; err == nil {
		t.Fatal("connected to a server that is down")
	}
	for seen := p.connects(); p.connects() < seen+3; {
		runtime.Gosched()
	}
	p.setDown(false)
	r.online(l)
	if err := <-notices; err != nil {
		t.Fatalf("a second notice of one outage: %v", err)
	}
	stop()
	close(notices)
	for err := range notices {
		t.Errorf("another notice: %v", err)
	}
}
