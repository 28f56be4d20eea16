/* The run of the mean, and two that are held inside of what training has shown: none of the values of one falls below
   their ranges, none of the other rises above. The band is wider by their distances. */
typedef struct {
    ${real} free[${states}], raised[${states}], lowered[${states}];
    ${real} doubt[${outputs}];
} ${name}_beyond;

