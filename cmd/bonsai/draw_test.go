package main

import (
	"bytes"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Sizes of the picture, in pixels.
const (
	panelWidth, panelHeight = 480, 190
	plotLeft, plotTop       = 62, 28
	plotWidth, plotHeight   = 270, 130
)

var colours = []string{"#3b76b8", "#c8641e", "#3c8c4a", "#a83a3a", "#7a5aa8", "#7a5a48", "#c060a0", "#606060"}

// line is one series of a panel, with its legend.
type line struct {
	legend string
	points []point
}

// draw asks for all panels over a time that ends now, and draws what comes back, as it is.
func (p *scraper) draw(t *testing.T, board *dashboard, shown time.Duration) []byte {
	t.Helper()
	end := time.Now()
	arguments := url.Values{"start": {fmt.Sprint(end.Add(-shown).Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {"2"}}
	var b bytes.Buffer
	rows := (len(board.Panels) + 1) / 2
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		2*panelWidth, rows*panelHeight)
	for i := range board.Panels {
		panel := &board.Panels[i]
		var lines []line
		for _, target := range panel.Targets {
			var data struct{ Result []series }
			arguments.Set("query", target.Expr)
			if err := p.get("query_range", arguments, &data); err != nil {
				t.Fatal(err)
			}
			for _, s := range data.Result {
				lines = append(lines, line{legend(target.LegendFormat, s.Metric), s.Values})
			}
		}
		fmt.Fprintf(&b, "<g transform=\"translate(%d %d)\">\n", i%2*panelWidth, i/2*panelHeight)
		drawPanel(&b, panel, lines, float64(end.Add(-shown).Unix()), shown.Seconds())
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// legendLabel is a label as a legend names it.
var legendLabel = regexp.MustCompile(`{{(\w+)}}`)

// legend fills labels in.
func legend(format string, labels map[string]string) string {
	return legendLabel.ReplaceAllStringFunc(format, func(f string) string { return labels[strings.Trim(f, "{}")] })
}

// drawPanel draws the lines from zero up to the largest value.
func drawPanel(b *bytes.Buffer, p *panel, lines []line, begin, seconds float64) {
	top := 0.0
	for _, l := range lines {
		for _, v := range l.points {
			if !math.IsNaN(v.value) {
				top = max(top, v.value)
			}
		}
	}
	if top == 0 {
		top = 1
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"18\" font-weight=\"bold\">%s</text>\n", plotLeft, escape(p.Title))
	for _, part := range []float64{0, 0.5, 1} {
		y := plotTop + plotHeight*(1-part)
		fmt.Fprintf(b, "<path d=\"M%d %.0fh%d\" stroke=\"#ccc\"/><text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">%s</text>\n",
			plotLeft, y, plotWidth, plotLeft-5, y+4, escape(inUnit(part*top, p.FieldConfig.Defaults.Unit)))
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">0</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.0f s</text>\n",
		plotLeft, plotTop+plotHeight+15, plotLeft+plotWidth, plotTop+plotHeight+15, seconds)
	const mostLegends = 10
	for i, l := range lines {
		colour := colours[i%len(colours)]
		var path strings.Builder
		pen := "M"
		for _, v := range l.points {
			if math.IsNaN(v.value) {
				pen = "M"
				continue
			}
			fmt.Fprintf(&path, "%s%.0f %.0f", pen, plotLeft+plotWidth*(v.at-begin)/seconds, plotTop+plotHeight*(1-v.value/top))
			pen = "L"
		}
		fmt.Fprintf(b, "<path d=\"%s\" fill=\"none\" stroke=\"%s\"/>\n", path.String(), colour)
		if i < mostLegends {
			fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", plotLeft+plotWidth+8, plotTop+8+14*i, colour, escape(l.legend))
		}
	}
}

// inUnit writes a value in the unit that Grafana would show.
func inUnit(v float64, unit string) string {
	switch {
	case v == 0:
		return "0"
	case unit == "percentunit":
		return fmt.Sprintf("%.3g %%", 100*v)
	case unit == "bytes":
		return fmt.Sprintf("%.3g MiB", v/(1<<20))
	case unit == "s":
		return fmt.Sprintf("%.3g ms", 1000*v)
	case unit == "reqps":
		return inUnit(v, "") + "/s"
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
