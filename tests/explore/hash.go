package explore

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/rdmashim/rdmashim/rnic/splitmix"
)

// hash is a hash of all that a model holds. A pointer that was met before
// counts as its number in the order of meeting, and elements before the head of
// a queue in a slice count as nothing.
func hash(m Model) uint64 {
	h := hasher{met: map[pointer]uint64{}}
	h.value(reflect.ValueOf(m))
	return h.sum
}

type hasher struct {
	sum uint64
	met map[pointer]uint64
}

// pointer has its type, since a structure begins where its first field does.
type pointer struct {
	to reflect.Type
	at uintptr
}

// word mixes a word in, as splitmix64 does.
func (h *hasher) word(w uint64) { h.sum = splitmix.Mix(h.sum ^ w) }

func (h *hasher) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			h.word(2)
		} else {
			h.word(1)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		h.word(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		h.word(v.Uint())
	case reflect.String:
		h.word(uint64(v.Len()))
		for _, c := range []byte(v.String()) {
			h.word(uint64(c))
		}
	case reflect.Slice, reflect.Array:
		h.word(uint64(v.Len()))
		for i := range v.Len() {
			h.value(v.Index(i))
		}
	case reflect.Map:
		h.unordered(v)
	case reflect.Struct:
		if head := v.FieldByName("head"); head.IsValid() { // a queue in a slice
			items := v.FieldByName("items")
			h.value(items.Slice(int(head.Int()), items.Len()))
			return
		}
		for i := range v.NumField() {
			h.value(v.Field(i))
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			h.word(0)
			return
		}
		if v.Kind() == reflect.Pointer {
			p := pointer{v.Type(), v.Pointer()}
			if n := h.met[p]; n > 0 {
				h.word(1 + n)
				return
			}
			h.met[p] = uint64(len(h.met)) + 1
		}
		h.word(1)
		h.value(v.Elem())
	default:
		panic(fmt.Sprintf("a model holds %s", v.Kind()))
	}
}

// unordered mixes a map in, whose entries come in any order: what one of them
// meets the others have not met.
func (h *hasher) unordered(v reflect.Value) {
	var sum uint64
	for i := v.MapRange(); i.Next(); {
		e := hasher{met: maps.Clone(h.met)}
		e.value(i.Key())
		e.value(i.Value())
		sum += e.sum
	}
	h.word(sum)
}
