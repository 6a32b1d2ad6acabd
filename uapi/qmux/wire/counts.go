package wire

import "iter"

// Counts count frames by type, also of types that QMux forbids or does not
// know: that they are not there is worth counting.
type Counts [places]uint64

// Add counts a frame.
func (c *Counts) Add(t FrameType) { c[t.place()]++ }

// All returns the names of the types that were counted, each once, and how many
// frames they had.
func (c *Counts) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for i := 0; i < len(c); {
			name, n := placeName(i), c[i]
			for i++; i < len(c) && placeName(i) == name; i++ {
				n += c[i]
			}
			if n > 0 && !yield(name, n) {
				return
			}
		}
	}
}

func placeName(i int) string {
	switch {
	case i == unknownPlace:
		return "UNKNOWN"
	case layouts[i].name != "":
		return layouts[i].name
	}
	return FrameType(i).String()
}
