package main

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
)

// asks are the commands that change nothing of a device, whatever they are given, and why they need no consent.
var asks = map[string]string{
	"completion": "prints a script", "help": "prints a text", "explain": "prints a text", "version": "prints a line", "validate": "reads files",
	"status": "reads the fleet", "watch": "reads the fleet", "receipts": "reads the fleet", "history": "reads the fleet", "info": "reads the fleet",
	"requests": "reads what devices wrote down", "plan": "the device looks and answers", "rollback-check": "the device looks and answers",
	"keys":  "makes files; what publish hands on to devices is previewed, and so is each change: TestKeys",
	"audit": "reads the fleet", "user": "says who may connect, which lets nothing happen to a device",
	"device": "says who may connect as what; each of it is previewed: TestDevice",
	"up":     "runs a server", "serve": "runs a service", "setup": "creates streams that are missing, on a server", "demo": "has devices of its own",
}

// Every command either changes nothing of a device, or previews and changes nothing without --confirm: G29, S25, H54.
func TestNothingIsDoneWithoutConsent(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1")
	pi := b.device("pi-1")
	pi.mem.Put("/etc/kiosk.conf", "url=http://old.example\n")
	file := b.write("m.yaml", guarded)
	b.run("publish", file, "--confirm", "--wait")
	_, out, _ := b.run("plan", "pi-1")
	plan := planID.FindStringSubmatch(out)
	if plan == nil {
		t.Fatal(out)
	}
	changed := b.write("changed.yaml", strings.Replace(guarded, "Managed.", "Changed.", 1))
	held := filepath.Join(b.dir, "held.json")
	if code, _, errs := b.run("install", "pi-1", "--plan", plan[1], "--out", held); code != 0 {
		t.Fatal(errs)
	}
	changing := map[string][]string{
		"sign":      {held},
		"publish":   {changed},
		"unpublish": {"pi-1", "kiosk"},
		"collect":   {"--spare", "0s"},
		"install":   {"pi-1", "--plan", plan[1]},
		"approve":   {"pi-1", "--plan", plan[1], "--action", "kiosk/conf"},
		"adopt":     {"pi-1", "kiosk", "conf"},
		"release":   {"pi-1", "kiosk"},
		"restore":   {"pi-1", "kiosk.conf.20260101T000000Z.00000000"},
	}
	state := func() string {
		s := fmt.Sprint(b.stored(wire.StreamDesired), " ", b.stored(wire.StreamJournal))
		for _, f := range []string{"/etc/kiosk.conf", "/etc/motd"} {
			content, _ := pi.mem.Read(f)
			s += " " + f + " " + pi.mem.Identity(f) + " " + content
		}
		return s
	}
	before := state()
	root := newRoot()
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		_, harmless := asks[c.Name()]
		args, known := changing[c.Name()]
		switch confirm := c.Flags().Lookup("confirm"); {
		case harmless && (known || confirm != nil):
			t.Errorf("%s has --confirm and is said to change nothing", c.Name())
		case harmless:
		case !known:
			t.Errorf("%s is new: say here that it changes nothing of a device, or how it is called and previews", c.Name())
		case confirm == nil:
			t.Errorf("%s changes something and has no --confirm", c.Name())
		default:
			code, out, errs := b.run(append([]string{c.Name()}, args...)...)
			if code != 0 || out == "" || !strings.Contains(errs, "this is a preview; add --confirm") {
				t.Errorf("%s: exit %d, want 0: %s%s", c.Name(), code, out, errs)
			}
			if now := state(); now != before {
				t.Errorf("%s changed something:\n%s\n%s", c.Name(), before, now)
			}
		}
	}
	for name := range changing {
		if c, _, err := root.Find([]string{name}); err != nil || c == root {
			t.Errorf("there is no command %s", name)
		}
	}
	// The proof can fail: what is confirmed is seen.
	b.run("publish", changed, "--confirm", "--wait")
	if state() == before {
		t.Error("what was published is not seen")
	}
}

// stored is how much was ever written to a stream.
func (b *bench) stored(stream string) uint64 {
	b.t.Helper()
	nc, err := localnats.Dir(filepath.Join(b.dir, "data")).Operator().Dial()
	if err != nil {
		b.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil {
		b.t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}

var freeform = regexp.MustCompile(`(?i)command|argv|args|shell|script|exec|path|file|env|url|content`)

// What a device can be asked for is typed: no field of a request is a command, an argument list or a free path, and
// none holds what has no type: G30.
func TestRequestsAreTyped(t *testing.T) {
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, at string) {
		switch typ.Kind() {
		case reflect.Slice, reflect.Pointer:
			walk(typ.Elem(), at)
		case reflect.Interface, reflect.Map, reflect.Func, reflect.Chan:
			t.Errorf("%s is a %s", at, typ)
		case reflect.Struct:
			if typ.PkgPath() == "time" {
				return
			}
			for _, f := range reflect.VisibleFields(typ) {
				if freeform.MatchString(f.Name) {
					t.Errorf("%s.%s is a free text that decides what is done", at, f.Name)
				}
				walk(f.Type, at+"."+f.Name)
			}
		case reflect.Uint8:
			t.Errorf("%s is raw bytes", at)
		}
	}
	walk(reflect.TypeFor[interpret.Operation](), "Operation")
}
