//go:build plant

package engine

import "github.com/rdmashim/rdmashim/rnic/mem"

var planted = plantNone

// Plants are the names that Plant takes.
func Plants() []string {
	return []string{"psn-check-skipped", "completion-doubled", "ack-lost-for-good", "stale-key-accepted", "length-off-by-one"}
}

// Plant makes this process's engines make a mistake, by its name; "" ends it. It
// reports whether it knows the name. It exists in builds with the tag "plant" only.
func Plant(name string) bool {
	planted = plantNone
	mem.PlantStaleKey(false)
	switch name {
	case "":
	case "psn-check-skipped":
		planted = plantPSNCheck
	case "completion-doubled":
		planted = plantDouble
	case "ack-lost-for-good":
		planted = plantAckLost
	case "stale-key-accepted":
		mem.PlantStaleKey(true)
	case "length-off-by-one":
		planted = plantLength
	default:
		return false
	}
	return true
}
