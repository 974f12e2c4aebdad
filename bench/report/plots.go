package main

import (
	"image/color"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

var colours = []color.Color{
	color.RGBA{0x35, 0x6b, 0x3c, 0xff}, color.RGBA{0xc9, 0x7b, 0x2a, 0xff}, color.RGBA{0x3b, 0x5f, 0x8a, 0xff},
	color.RGBA{0x9a, 0x3d, 0x3d, 0xff}, color.RGBA{0x6d, 0x54, 0x8c, 0xff}, color.RGBA{0x55, 0x55, 0x55, 0xff},
	color.RGBA{0x2f, 0x8f, 0x8f, 0xff}, color.RGBA{0xb0, 0x5a, 0x8a, 0xff},
}

// barsOf is one colour of bars, a value a layout.
type barsOf struct {
	name   string
	values plotter.Values
}

// barChart writes groups of bars, one a name, to a file.
func (s *settings) barChart(file, title, unit string, names []string, groups []barsOf) error {
	p := plot.New()
	p.Title.Text, p.Y.Label.Text = title, unit
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	width := vg.Points(36 / float64(len(groups)))
	for i, g := range groups {
		bars, err := plotter.NewBarChart(g.values, width)
		if err != nil {
			return err
		}
		bars.Color, bars.LineStyle.Width = colours[i%len(colours)], 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(groups)-1)/2)
		p.Add(bars)
		p.Legend.Add(g.name, bars)
	}
	p.Legend.Top = true
	p.NominalX(names...)
	return p.Save(9*vg.Inch, 4.5*vg.Inch, filepath.Join(s.out, file))
}

// curve is one line of a plot.
type curve struct {
	name   string
	points plotter.XYs
}

// lineChart writes curves to a file.
func (s *settings) lineChart(file, title, x, y string, curves []curve) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Add(plotter.NewGrid())
	for i, c := range curves {
		line, points, err := plotter.NewLinePoints(c.points)
		if err != nil {
			return err
		}
		line.Color, points.Color = colours[i%len(colours)], colours[i%len(colours)]
		p.Add(line, points)
		p.Legend.Add(c.name, line, points)
	}
	p.Legend.Left, p.Legend.Top = true, true
	return p.Save(8*vg.Inch, 5*vg.Inch, filepath.Join(s.out, file))
}

// plots draws the layouts with one mix.
func (m *mixResult) plots(s *settings) error {
	var names []string
	var returned, kept, floor, hot, random, insert plotter.Values
	for _, r := range m.list {
		names = append(names, r.name)
		returned = append(returned, r.full.Returned/float64(r.full.Len))
		kept = append(kept, r.full.Kept/float64(r.full.Len))
		floor = append(floor, m.floor)
		hot = append(hot, r.time("hot"))
		random = append(random, r.time("random"))
		insert = append(insert, r.churn.CPU)
	}
	err := s.barChart("bytes-"+m.mix+".svg", "Resident bytes an entry, "+m.mix+" mix", "bytes", names,
		[]barsOf{{"kept by the runtime", kept}, {"returned to the system", returned}, {"floor", floor}})
	if err != nil {
		return err
	}
	err = s.barChart("lookup-"+m.mix+".svg", "Lookup with response, "+m.mix+" mix", "ns of CPU", names, []barsOf{{"hot", hot}, {"random", random}})
	if err != nil {
		return err
	}
	return s.barChart("insert-"+m.mix+".svg", "Insert with eviction, "+m.mix+" mix, collector included", "ns of CPU", names, []barsOf{{"insert", insert}})
}
