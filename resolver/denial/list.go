package denial

import "bytes"

// list is offsets of records in order of their keys, in pieces of bounded length, so that an insertion
// moves little.
type list struct {
	pieces [][]ref
	count  int
}

const maxPiece = 256

func (l *list) len() int { return l.count }

// at returns the record number i.
func (l *list) at(i int) ref {
	for _, p := range l.pieces {
		if i < len(p) {
			return p[i]
		}
		i -= len(p)
	}
	return 0
}

// find returns the place of key: the piece, and the index in it of the first record not below key.
func (l *list) find(r *ring, key []byte) (piece, index int, found bool) {
	low, high := 0, len(l.pieces) // the last piece that begins at or below key
	for low < high {
		if mid := (low + high) / 2; bytes.Compare(r.key(l.pieces[mid][0]), key) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	piece = max(0, low-1)
	if len(l.pieces) == 0 {
		return 0, 0, false
	}
	p := l.pieces[piece]
	low, high = 0, len(p)
	for low < high {
		mid := (low + high) / 2
		switch c := bytes.Compare(r.key(p[mid]), key); {
		case c == 0:
			return piece, mid, true
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return piece, low, false
}

// search returns the number of the record with this key, or of the first one above it.
func (l *list) search(r *ring, key []byte) (i int, found bool) {
	piece, index, found := l.find(r, key)
	for _, p := range l.pieces[:piece] {
		i += len(p)
	}
	return i + index, found
}

// atOrBefore returns the record with this key, or the last one below it; with wrap the last of all
// where none is below it. 0 where there is none.
func (l *list) atOrBefore(r *ring, key []byte, wrap bool) (at ref, found bool) {
	if l.count == 0 {
		return 0, false
	}
	piece, index, found := l.find(r, key)
	switch {
	case found:
		return l.pieces[piece][index], true
	case index > 0:
		return l.pieces[piece][index-1], false
	case wrap: // below the first of all
		p := l.pieces[len(l.pieces)-1]
		return p[len(p)-1], false
	}
	return 0, false
}

// insert adds a record whose key is not in the list.
func (l *list) insert(r *ring, at ref) {
	l.count++
	if len(l.pieces) == 0 {
		l.pieces = append(l.pieces, append(make([]ref, 0, 4), at))
		return
	}
	i, k, _ := l.find(r, r.key(at))
	p := append(l.pieces[i], 0)
	copy(p[k+1:], p[k:])
	p[k] = at
	l.pieces[i] = p
	if len(p) < maxPiece {
		return
	}
	half := append(make([]ref, 0, maxPiece*3/4), p[maxPiece/2:]...)
	l.pieces = append(l.pieces, nil)
	copy(l.pieces[i+2:], l.pieces[i+1:])
	l.pieces[i], l.pieces[i+1] = p[:maxPiece/2], half
}

// remove takes a record out.
func (l *list) remove(r *ring, at ref) {
	i, k, found := l.find(r, r.key(at))
	if !found {
		return
	}
	l.count--
	p := l.pieces[i]
	copy(p[k:], p[k+1:])
	if l.pieces[i] = p[:len(p)-1]; len(p) == 1 {
		l.pieces = append(l.pieces[:i], l.pieces[i+1:]...)
	}
}
