// Package connection interprets score.Ethernet and score.Wifi: what a connection is kept as,
// and whether it is in force, are compared in one way for both.
//
// Every change is made under a checkpoint: a connection may be the way to the fleet, and a new
// one may take that away.
package connection

import (
	"context"
	"fmt"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasNetwork }

// reader and writer are the halves of what both kinds need.
type (
	reader interface {
		topology.ConnectionReader
		topology.Secrets
	}
	writer interface {
		topology.ConnectionWriter
		topology.Secrets
	}
	device struct {
		topology.Network
		topology.Secrets
	}
)

// A spec is what both kinds have in common.
type spec interface {
	score.Spec
	score.Confirming
}

// Ethernet binds the interpreter of score.Ethernet to t.
func Ethernet[T Needs](t T) interpret.Binding { return bind(t, wired) }

// Wifi binds the interpreter of score.Wifi to t.
func Wifi[T Needs](t T) interpret.Binding { return bind(t, wireless) }

func bind[S spec](t Needs, read func(S) wish) interpret.Binding {
	d := device{t.Network(), topology.NoSecrets{}}
	if h, ok := t.(topology.HasSecrets); ok {
		d.Secrets = h.Secrets()
	}
	return interpret.Of[S, Observed, reader, writer](interpreter[S]{read}, d, d)
}

// A wish is a spec in the words of the topology.
type wish struct {
	config topology.ConnectionConfig
	secret string // name of the password; empty: none
	absent bool
}

type interpreter[S spec] struct{ read func(S) wish }

// Fields of changes that are no fields of a spec.
const (
	fieldConnection = "connection"
	fieldLink       = "link"
	fieldAddresses  = "addresses"
	fieldDurable    = "durable"
)

func (interpreter[S]) FieldOf(c topology.Code) string {
	if c == topology.CodeSecret {
		return "password"
	}
	return "name"
}

func (in interpreter[S]) Observe(ctx context.Context, r reader, s S) (Observed, error) {
	w := in.read(s)
	st, err := r.Connection(ctx, w.config)
	if err != nil {
		return Observed{}, err
	}
	o := observed(st)
	if o.Present && len(st.Config.Password) > 0 {
		o.Password = r.Fingerprint(st.Config.Password)
	}
	if w.secret != "" && !w.absent {
		value, err := r.Secret(ctx, w.secret)
		if err != nil {
			return o, err
		}
		o.wanted = r.Fingerprint(value)
		clear(value)
	}
	if st.Blocked && !w.absent && st.Present && in.differs(w, o) == nil {
		return o, topology.Faultf(topology.CodeRadioBlocked, "the radio of %s is switched off: %s", st.Device, st.Reason)
	}
	return o, nil
}

func (in interpreter[S]) Diff(s S, o Observed) []interpret.Change {
	w := in.read(s)
	switch {
	case w.absent && o.Present:
		return []interpret.Change{{Field: "state", Have: string(score.Present), Want: string(score.Absent), Effect: interpret.Remove}}
	case w.absent:
		return nil
	case !o.Present && o.Other != "":
		return []interpret.Change{{Field: fieldConnection, Have: "another one on " + o.Device + ": " + o.Other, Want: w.config.Name, Effect: interpret.Disrupt}}
	case !o.Present:
		return []interpret.Change{{Field: fieldConnection, Have: string(score.Absent), Want: string(score.Present), Effect: interpret.Create}}
	}
	out := in.differs(w, o)
	if len(out) > 0 {
		return out
	}
	switch missing := w.config.Missing(o.found.Addresses, o.found.Routes); {
	case o.Link == string(topology.LinkDown):
		have := string(topology.LinkDown)
		if o.Other != "" {
			have = "down, " + o.Device + " has " + o.Other
		}
		return []interpret.Change{{Field: fieldLink, Have: have, Want: string(topology.LinkUp), Effect: interpret.Disrupt}}
	case o.Link == string(topology.LinkUp) && len(missing) > 0:
		return []interpret.Change{{Field: fieldAddresses, Have: strings.Join(o.Addresses, " "), Want: interpret.Brief("with " + strings.Join(missing, " ")), Effect: interpret.Disrupt}}
	}
	return nil
}

// differs compares what is kept.
func (interpreter[S]) differs(w wish, o Observed) (out []interpret.Change) {
	differ := func(field, have, want string, e interpret.Effect) {
		if have != want {
			out = append(out, interpret.Change{Field: field, Have: interpret.Brief(have), Want: interpret.Brief(want), Effect: e})
		}
	}
	have := o.config
	if w.config.Type != topology.ConnectionWifi {
		have.Country = "" // a wire has none
	}
	wants := parts(w.config)
	for i, have := range parts(have) {
		want := wants[i]
		differ(have.field, have.text, want.text, have.effect)
	}
	differ("password", o.Password, o.wanted, interpret.Disrupt)
	if len(out) == 0 {
		differ(fieldDurable, fmt.Sprint(o.Durable), "true", interpret.Mutate)
	}
	return out
}

type part struct {
	field, text string
	effect      interpret.Effect
}

// parts lists what a connection is made from, but for its password, as text that tells all of it.
func parts(c topology.ConnectionConfig) []part {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	vlan := ""
	if c.Type == topology.ConnectionVLAN {
		vlan = fmt.Sprintf("%d on %s", c.VLANID, c.Parent)
	}
	ssid, _ := score.SSID(c.SSID).MarshalText()
	hidden := ""
	if c.Hidden {
		hidden = "true"
	}
	return []part{
		{"interface", c.Interface, interpret.Disrupt}, {"mac", c.MAC, interpret.Disrupt}, {"vlan", vlan, interpret.Disrupt},
		{"ssid", string(ssid), interpret.Disrupt}, {"security", c.Security, interpret.Disrupt}, {"hidden", hidden, interpret.Disrupt},
		{"band", c.Band, interpret.Disrupt}, {"country", c.Country, interpret.Mutate},
		{"ipv4", c.IPv4.String(), interpret.Disrupt}, {"ipv6", c.IPv6.String(), interpret.Disrupt},
		{"mtu", number(int64(c.MTU)), interpret.Disrupt}, {"priority", number(int64(c.Priority)), interpret.Mutate},
	}
}

// Checkpoint is made before every change, removals included.
func (in interpreter[S]) Checkpoint(ctx context.Context, w writer, s S, _ interpret.Task) (topology.Checkpoint, error) {
	confirm := s.Confirmation()
	return w.Checkpoint(ctx, confirm.Window())
}

func (in interpreter[S]) Apply(ctx context.Context, w writer, s S, t interpret.Task) error {
	want := in.read(s)
	if want.absent {
		return w.RemoveConnection(ctx, want.config.Name)
	}
	if want.secret != "" {
		value, err := w.Secret(ctx, want.secret)
		if err != nil {
			return err
		}
		want.config.Password = value
		if err := usable(want.config); err != nil {
			return err
		}
	}
	return w.SetConnection(ctx, want.config, t.Mark)
}

// usable refuses a password that no wireless network could have, without a word of it.
func usable(c topology.ConnectionConfig) error {
	p := string(c.Password)
	text := !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f })
	switch {
	case c.Security == string(score.SecurityPSK) && (len(p) < 8 || len(p) > 64):
		return topology.Faultf(topology.CodeSecret, "the password of this network has %d bytes; a WPA2 password has 8 to 63, or is a key of 64 hexadecimal digits", len(p))
	case p == "" || !text:
		return topology.Faultf(topology.CodeSecret, "the password of this network is empty or has line breaks: how does its file end?")
	}
	return nil
}

func (in interpreter[S]) Remove(ctx context.Context, w writer, last S) error {
	return w.RemoveConnection(ctx, in.read(last).config.Name)
}
