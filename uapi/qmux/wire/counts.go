package wire

import "iter"

// Counts count frames by type, also of types that QMux forbids or does not
// know: that they are not there is worth counting.
type Counts [len(layouts) + 4]uint64

// The places of types that take more than one byte, behind those of one byte.
const (
	pingPlace = len(layouts) + iota
	pongPlace
	parametersPlace
	unknownPlace
)

// Add counts a frame.
func (c *Counts) Add(t FrameType) { c[t.place()]++ }

func (t FrameType) place() int {
	switch {
	case t < FrameType(len(layouts)):
		return int(t)
	case t == TypePing:
		return pingPlace
	case t == TypePong:
		return pongPlace
	case t.IsParameters():
		return parametersPlace
	}
	return unknownPlace
}

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
	switch i {
	case pingPlace:
		return TypePing.String()
	case pongPlace:
		return TypePong.String()
	case parametersPlace:
		return TypeParameters.String()
	case unknownPlace:
		return "UNKNOWN"
	}
	return FrameType(i).String()
}
