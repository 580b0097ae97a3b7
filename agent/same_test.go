package agent

import (
	"reflect"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
)

// Two statuses are the same only if no field says something else, whatever field is added.
func TestSameSeesEveryField(t *testing.T) {
	blank := func() interpret.DeviceStatus {
		return interpret.DeviceStatus{Manifests: []interpret.ManifestStatus{{Scores: make([]interpret.ScoreStatus, 2)}}}
	}
	if !same(blank(), blank()) {
		t.Error("equal statuses are not the same")
	}
	silent := map[string]bool{"Started": true, "Finished": true, "Time": true} // when it was said
	each := func(name string, of func(*interpret.DeviceStatus) reflect.Value) {
		st := blank()
		typ := of(&st).Type()
		for i := range typ.NumField() {
			field := typ.Field(i)
			if typ == reflect.TypeFor[interpret.Conditions]() || field.Type.Kind() != reflect.Struct || field.Type == reflect.TypeFor[time.Time]() {
				st := blank()
				fill(of(&st).Field(i))
				if got := same(blank(), st); got != silent[field.Name] && field.Name != "Sequence" {
					t.Errorf("%s.%s: same is %v", name, field.Name, got)
				}
			}
		}
	}
	each("device", func(st *interpret.DeviceStatus) reflect.Value { return reflect.ValueOf(st).Elem() })
	each("agent", func(st *interpret.DeviceStatus) reflect.Value { return reflect.ValueOf(&st.Agent).Elem() })
	each("manifest", func(st *interpret.DeviceStatus) reflect.Value { return reflect.ValueOf(&st.Manifests[0]).Elem() })
	each("score", func(st *interpret.DeviceStatus) reflect.Value {
		return reflect.ValueOf(&st.Manifests[0].Scores[1]).Elem()
	})
	each("conditions", func(st *interpret.DeviceStatus) reflect.Value {
		return reflect.ValueOf(&st.Manifests[0].Scores[1].Conditions).Elem()
	})
}

// fill makes v another value than the zero one.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
	case reflect.Struct:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
	default:
		panic("agent: cannot fill a " + v.Kind().String())
	}
}
