package score

import "strings"

// Touches is what a spec uses of a device by the choice of its author, so that the owner of the
// device can say what may be used at all. What a kind writes for itself at a place of its own,
// such as the definition of a unit, is not meant.
type Touches struct {
	Paths  []string // files, directories and device nodes, absolute
	Images []string // references of container images
	// Seen are the directories of the device that containers see: the paths of them are among Paths.
	Seen []Volume
}

// A Toucher is implemented by specs that touch something else than the files that they claim.
type Toucher interface{ Touches() Touches }

// TouchedBy is what a spec touches.
func TouchedBy(s Spec) (t Touches) {
	if s, ok := s.(Toucher); ok {
		return s.Touches()
	}
	for _, r := range s.Claims() {
		if p, ok := strings.CutPrefix(string(r), "file:"); ok {
			t.Paths = append(t.Paths, p)
		}
	}
	return t
}

// Touches nothing: a unit file lies where its name says.
func (Service) Touches() Touches { return Touches{} }

// Touches is what of the device the container sees, and the images that it is made from.
func (c Container) Touches() Touches {
	t := Touches{Images: []string{c.Image}}
	t.see(c.Volumes)
	for _, d := range c.Devices {
		t.Paths = append(t.Paths, d.Host)
	}
	for _, i := range c.Init {
		t.see(i.Volumes)
		if i.Image != "" {
			t.Images = append(t.Images, i.Image)
		}
	}
	return t
}

// Touches is what of the device a container sees that runs to its end, and its image. A program of the device is
// a unit, which is claimed.
func (j Job) Touches() (t Touches) {
	if j.Container != nil {
		t.Images = []string{j.Container.Image}
		t.see(j.Container.Volumes)
	}
	return t
}

// see adds the directories of the device that volumes show; named volumes are podman's.
func (t *Touches) see(volumes []Volume) {
	for _, v := range volumes {
		if strings.HasPrefix(v.Source, "/") {
			t.Paths, t.Seen = append(t.Paths, v.Source), append(t.Seen, v)
		}
	}
}
