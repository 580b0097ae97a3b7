package fleet

import (
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Whatever a device writes about itself, it is read as such a document or not at all.
func FuzzDecodeInfo(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"continuo/v1","kind":"DeviceInfo","device":"pi-1","facts":{"clockSynchronized":true,"memoryMiB":900}}`))
	f.Add([]byte(`{"apiVersion":"continuo/v1","kind":"DeviceInfo","tools":[{"name":"podman","condition":"present"}],"clock":{}}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := decodeInfo(b)
		if (i == nil) == (err == nil) {
			t.Fatalf("got %v, %v", i, err)
		}
		if err == nil && (i.APIVersion != score.APIVersion || i.Kind != interpret.InfoKind || len(b) > maxStatus) {
			t.Fatalf("read %+v", i)
		}
	})
}
