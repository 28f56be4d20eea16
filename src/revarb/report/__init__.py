"""Tables and pages for people: values in, renderables or HTML out."""
