//go:build plant

package mem

const (
	plantNone     = 0
	plantStaleKey = 1
)

var planted = plantNone

// PlantStaleKey makes lookups accept the keys of regions that are gone. It
// exists in builds with the tag "plant" only, to show that tests notice.
func PlantStaleKey(on bool) {
	planted = plantNone
	if on {
		planted = plantStaleKey
	}
}
