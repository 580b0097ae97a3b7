package score

import "regexp"

func init() {
	Register(Definition[Hostname]{
		Doc:    "The name of the device in its network.",
		Needs:  []Capability{CapHostname},
		Sample: Hostname{Name: "kiosk-7"},
	})
}

// KindHostname is the kind of Hostname.
const KindHostname Kind = "hostname"

// Hostname is the static host name of the device.
type Hostname struct {
	// Name is one DNS label.
	Name string `json:"name" effect:"mutate" jsonschema:"maxLength=63,pattern=^[a-z0-9]([a-z0-9-]*[a-z0-9])?$,example=kiosk-7"`
}

// Kind is KindHostname.
func (Hostname) Kind() Kind { return KindHostname }

// Claims is the one host name that a device has.
func (Hostname) Claims() []Resource { return []Resource{"hostname"} }

// AddHostname adds the host name to a draft.
func AddHostname[P HostNaming](d *Draft[P], id ID, h Hostname) Ref[Hostname] { return add(d, id, h) }

var labelRE = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Check refuses what is no DNS label.
func (h Hostname) Check(r *Report) {
	if !labelRE.MatchString(h.Name) {
		r.At("name").Errorf("name %q must be one DNS label: lower-case letters, digits and '-', at most 63", h.Name)
	}
}
