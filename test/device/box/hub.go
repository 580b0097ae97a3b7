//go:build linux

package box

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// HubListen listens on a TCP port of the hub's address (0: any free one), where every box reaches it as
// HubIP or HubName, although the test process itself is not on that network.
func HubListen(t testing.TB, port int) net.Listener {
	t.Helper()
	hubUp(t)
	var l net.Listener
	err := inHub(func() (err error) {
		l, err = net.Listen("tcp", fmt.Sprintf("%s:%d", HubIP, port))
		return err
	})
	if err != nil {
		t.Fatalf("cannot listen on the hub: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// HubDial connects from the hub to an address on the private network, for example to a port of a box.
func HubDial(ctx context.Context, address string) (net.Conn, error) {
	var c net.Conn
	err := inHub(func() (err error) {
		c, err = new(net.Dialer).DialContext(ctx, "tcp", address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot dial %s from the hub: %w", address, err)
	}
	return c, nil
}

// HubForward passes every connection to a TCP port of the hub (0: any free one) on to an address that the
// test process can dial, for servers that insist on listening themselves. It returns HubIP:PORT. A
// connection is closed at once while nobody listens at the target.
func HubForward(t testing.TB, port int, target string) string {
	t.Helper()
	l := HubListen(t, port)
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() { l.Close(); cancel(); running.Wait() })
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { forward(ctx, c, target) })
		}
	})
	return l.Addr().String()
}

func forward(ctx context.Context, c net.Conn, target string) {
	defer c.Close()
	d, err := new(net.Dialer).DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer d.Close()
	defer context.AfterFunc(ctx, func() { c.Close(); d.Close() })()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, d}, {d, c}} {
		both.Go(func() {
			io.Copy(way[0], way[1])
			way[0].(*net.TCPConn).CloseWrite() // the other direction may go on
		})
	}
	both.Wait()
}

// HubCommand prepares a program of this machine that runs on the hub: its listeners and connections are on the
// private network. Cancelling ctx kills it with its children.
func HubCommand(ctx context.Context, t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd, err := script(ctx, append([]string{"net", name}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// Registry starts a plain-http container registry on the hub, shared by all tests of the process, and returns
// its HOST:PORT. Boxes may push to it and pull from it.
func Registry(t testing.TB) string {
	t.Helper()
	out, err := output(t.Context(), "registry")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// hubUp makes sure that the private network is there, before any box is.
func hubUp(t testing.TB) {
	t.Helper()
	if netName == "" {
		t.Fatal("box: the package's TestMain must call box.Main")
	}
	if _, err := output(t.Context(), "net", "true"); err != nil {
		t.Fatal(err)
	}
}

// inHub runs f on a thread of its own inside the hub's network namespace. A socket stays in the namespace it
// was made in. The thread is never unlocked, so it ends with the goroutine and serves nobody else.
func inHub(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		fd, err := unix.Open("/run/netns/"+netName, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			done <- fmt.Errorf("cannot open the hub's network namespace: %w", err)
			return
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("cannot enter the hub's network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}
