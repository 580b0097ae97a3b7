// Command standin stands for the programs and the images that examples name: under whatever name it is started it does
// as much of what that program would do as its owner can see. It ends well where the program would end, and else it
// stays and answers on the ports that the program would listen on.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// ports that servers in images of examples listen on.
var ports = []int{80, 1880, 1883, 6379, 8000, 8080, 8443}

func main() {
	signal.Ignore(syscall.SIGHUP) // read your configuration again
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	if err := run(ctx, filepath.Base(os.Args[0]), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, args []string) error {
	switch {
	case name == "curl":
		return get(args[len(args)-1])
	case name == "rsync", name == "migrate", name == "notes" && len(args) > 0, name == "nginx" && slices.Contains(args, "-s"):
		return nil
	case name == "standin" && len(args) == 2: // PORT FILE: a proxy, which says that it lives
		return live(ctx, args[0], args[1])
	case name == "standin":
		for _, port := range ports {
			// Where others listen, or may not, there is no server to be seen.
			if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
				go http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			}
		}
	}
	<-ctx.Done()
	return nil
}

func get(url string) error {
	c := http.Client{Timeout: 5 * time.Second}
	r, err := c.Get(url)
	if err != nil {
		return err
	}
	return r.Body.Close()
}

func live(ctx context.Context, port, file string) error {
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	go http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for ; ctx.Err() == nil; time.Sleep(time.Second) {
		_ = os.WriteFile(file, nil, 0o644) // its directory comes with the service
	}
	return nil
}
