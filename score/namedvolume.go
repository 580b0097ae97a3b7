package score

func init() {
	Register(Definition[NamedVolume]{
		Doc:    "A named volume: data of containers that outlives them.",
		Needs:  []Capability{CapContainers},
		Sample: NamedVolume{Name: "cache"},
	})
}

// KindVolume is the kind of NamedVolume.
const KindVolume Kind = "volume"

// NamedVolume is a volume that containers mount by its name, on the storage of the device.
// To remove it destroys its data, and needs the consent of a person.
type NamedVolume struct {
	// Name of the volume, as containers mount it.
	Name string `json:"name" effect:"destroy" jsonschema:"maxLength=63,pattern=^[a-zA-Z0-9][a-zA-Z0-9_.-]*$,example=cache"`
}

// Kind is KindVolume.
func (NamedVolume) Kind() Kind { return KindVolume }

// Claims is the volume.
func (v NamedVolume) Claims() []Resource { return []Resource{Resource("volume:" + v.Name)} }

// AddVolume adds a named volume to a draft.
func AddVolume[P Containers](d *Draft[P], id ID, v NamedVolume) Ref[NamedVolume] {
	return add(d, id, v)
}

// Check refuses what podman would refuse.
func (v NamedVolume) Check(r *Report) {
	if len(v.Name) > 63 || !volumeNameRE.MatchString(v.Name) {
		r.At("name").Errorf("name %q must be letters, digits, '_', '.' and '-', beginning with a letter or digit, at most 63", v.Name)
	}
}
