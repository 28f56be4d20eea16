/* The run of the mean, and one that is held inside of what training has shown: the band is wider by their distance. */
typedef struct {
    ${real} free[${states}], held[${states}];
    ${real} doubt[${outputs}];
} ${name}_beyond;

