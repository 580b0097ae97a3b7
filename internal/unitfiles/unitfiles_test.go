package unitfiles

import "testing"

func TestUnit(t *testing.T) {
	tests := []struct{ below, want string }{
		{"kiosk.service", "kiosk.service"},
		{"kiosk.service.d/10-env.conf", "kiosk.service"},
		{"kiosk.service.d", "kiosk.service"},
		{"kiosk@.service", "kiosk@.service"},
		{"kiosk@one.timer.d/a.conf", "kiosk@one.timer"},
		{"a.b-c.socket", "a.b-c.socket"},
		{"service.d/10.conf", Every},        // of all services
		{"kiosk-.service.d/10.conf", Every}, // of all that begin so
		{"multi-user.target.wants/a.service", Every},
		{"kiosk.service.d/x/10.conf", Every},
		{"kiosk.conf", Every},
		{".service", Every},
		{"", Every},
	}
	for _, tt := range tests {
		if got := Unit(tt.below); got != tt.want {
			t.Errorf("%q is about %q, want %q", tt.below, got, tt.want)
		}
	}
	for below, want := range map[string]string{"web.container": "web.service", "web@.container": "web@.service", "web.volume": Every, "users/1000/web.container": Every,
		"web.container.d/10.conf": Every, ".container": Every} {
		if got := Container(below); got != want {
			t.Errorf("%q is about %q, want %q", below, got, want)
		}
	}
}

func TestDebts(t *testing.T) {
	var d Debts
	if now, all := d.Any(); now || all || d.Owed("a.service") {
		t.Fatal("something is owed at first")
	}
	d.Add("a.service")
	d.Add("t@.service")
	d.AddLater("l.service")
	for unit, want := range map[string]bool{"a.service": true, "b.service": false, "t@1.service": true, "t@.service": true, "l.service": false} {
		if d.Owed(unit) != want {
			t.Errorf("%s: owed %v", unit, !want)
		}
	}
	if !d.Owed("b.service", "a.service") {
		t.Error("it is not owed under its other name")
	}
	d.Defer("a.service")
	d.Defer("b.service")
	if d.Owed("a.service") || !d.Deferred("a.service") || d.Deferred("b.service") {
		t.Error("what is deferred is not owed at once, and what is not owed cannot be deferred")
	}
	marks := d.Marks()
	d.Add("a.service")
	if d.Forgive("a.service", marks) || !d.Owed("a.service") {
		t.Error("a mark that is newer is forgiven")
	}
	d.Pay(marks)
	if now, all := d.Any(); !now || !all || !d.Owed("a.service") || d.Owed("t@1.service") || d.Deferred("l.service") {
		t.Error("what was marked after a reload began is paid by it, or what was marked before is not")
	}
	if !d.Forgive("a.service", d.Marks()) {
		t.Error("it is not forgiven")
	}
	d.Add(Every)
	if !d.Owed("z.timer") || d.Forgive("z.timer", d.Marks()) {
		t.Error("every unit is owed to, and one of them may be forgiven alone")
	}
	d.Pay(d.Marks())
	if _, all := d.Any(); all {
		t.Error("something is owed after all was paid")
	}
}
