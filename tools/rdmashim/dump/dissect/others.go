package dissect

import (
	"cmp"
	"slices"
)

// Others counts records without a packet, by what they hold.
type Others struct {
	Strange uint64 // of those, not understood

	kinds map[Kind]uint64
}

// maxKinds bounds the kinds that are kept apart.
const maxKinds = 64

func (o *Others) add(k Kind) {
	if !k.Understood {
		o.Strange++
	}
	if _, there := o.kinds[k]; !there && len(o.kinds) >= maxKinds {
		k.Name = "other"
	}
	if o.kinds == nil {
		o.kinds = map[Kind]uint64{}
	}
	o.kinds[k]++
}

// Count is the records of a kind.
type Count struct {
	Kind
	Records uint64
}

// Counts lists them, the most frequent first.
func (o *Others) Counts() (list []Count) {
	for k, n := range o.kinds {
		list = append(list, Count{k, n})
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Name, b.Name))
	})
	return list
}
